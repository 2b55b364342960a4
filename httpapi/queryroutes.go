package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/pod"
)

// QueryRequest says which entities are looked for, and what is told of them.
type QueryRequest struct {
	// Pods are those that are looked through; only where the path names none.
	// Left out, all are.
	Pods []string `json:"pods,omitempty" doc:"only where the path names no pod; all if it is left out"`
	// Filter is an expression in CEL that entities must match.
	Filter *string `json:"filter,omitempty" doc:"an expression in CEL over pod, name, life, revision, changed and state"`
	// Prefix is what names must begin with.
	Prefix string   `json:"prefix,omitempty"`
	Select []string `json:"select,omitempty" doc:"the paths that are told, such as state.celsius; all if it is left out"`
	Sort   []string `json:"sort,omitempty" doc:"paths to sort by, with - in front for the greatest first"`
	Limit  *int     `json:"limit,omitempty" doc:"from 1 to 1000, 100 if it is left out"`
	Cursor string   `json:"cursor,omitempty"`
	Count  bool     `json:"count,omitempty" doc:"count all matches"`
	// Group asks for groups in place of entities.
	Group *QueryGroup `json:"group,omitempty"`
}

// QueryGroup says how what matches is put together.
type QueryGroup struct {
	By        []string `json:"by,omitempty" doc:"paths whose values make a group; without any, all is one"`
	Aggregate []string `json:"aggregate,omitempty" doc:"count, sum, avg, min or max of a path, such as avg(state.celsius)"`
}

// QueryResult is what a query found.
type QueryResult struct {
	// Items are Envelopes, or what was selected of them.
	Items []json.RawMessage `json:"items"`
	Next  string            `json:"next,omitempty"`
	// Count is the number of all matches, if it was asked for.
	Count *int `json:"count,omitempty"`
	// Groups stand in place of items when the query groups, and are empty when
	// nothing matches.
	Groups []GroupLine `json:"groups,omitzero"`
	// Quarantined are entities that cannot be read, at most 100 of them; they may
	// match or not. Unreadable is how many there are.
	Quarantined []QuarantinedLine `json:"quarantined,omitempty"`
	Unreadable  int               `json:"unreadable,omitempty"`
}

// GroupLine is one group.
type GroupLine struct {
	// By has the group's value at each path; a path at which nothing stands is
	// left out.
	By    map[string]json.RawMessage `json:"by,omitempty"`
	Count int                        `json:"count" doc:"entities of the group"`
	// Values has what was asked for, such as avg(state.celsius); left out when
	// there is nothing to make it of.
	Values map[string]json.RawMessage `json:"values,omitempty"`
}

// Bounds of queries, so that none needs much more than the scan itself.
const (
	maxSelect    = 100
	maxSort      = 8
	maxGroupBy   = 8
	maxAggregate = 32
)

// asksMore reports whether a list's request is a query.
func (c *call) asksMore() (bool, error) {
	q, err := c.query()
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc([]string{"filter", "select", "sort", "count", "group", "aggregate"}, q.Has), nil
}

func queryEntities(c *call) error {
	p, err := c.thePod()
	if err != nil {
		return err
	}
	r, err := c.queryOfURL()
	if err != nil {
		return err
	}
	return c.find(p, r)
}

// queryAll answers a query over several pods that stands in the URL.
func queryAll(c *call) error {
	r, err := c.queryOfURL()
	if err != nil {
		return err
	}
	return c.find(nil, r)
}

// postQuery answers a query that stands in the body.
func postQuery(c *call) error {
	p, err := c.thePod()
	if err != nil {
		return err
	}
	r, err := c.queryOfBody()
	switch {
	case err != nil:
		return err
	case r.Pods != nil:
		return refuse(CodeMalformed, "the path names the pod; pods is for /v1/query")
	}
	return c.find(p, r)
}

func postQueryAll(c *call) error {
	r, err := c.queryOfBody()
	if err != nil {
		return err
	}
	return c.find(nil, r)
}

func (c *call) queryOfBody() (r QueryRequest, err error) {
	data, err := c.body(jsonType)
	if err != nil {
		return r, err
	}
	return r, c.api.decode(data, &r)
}

// queryOfURL reads the query of a list. In it paths stand with commas between
// them.
func (c *call) queryOfURL() (r QueryRequest, err error) {
	q, err := c.query()
	if err != nil {
		return r, err
	}
	if q.Has("pods") {
		r.Pods = strings.Split(q.Get("pods"), ",")
	}
	r.Prefix, r.Cursor = q.Get("prefix"), q.Get("cursor")
	if text := q.Get("filter"); q.Has("filter") {
		r.Filter = &text
	}
	for _, name := range []string{"select", "sort"} {
		if q.Has(name) && q.Get(name) == "" {
			return r, refuse(CodeBadQuery, name+" is empty: leave it out, or name paths")
		}
	}
	r.Select, r.Sort = list(q.Get("select")), list(q.Get("sort"))
	if q.Has("limit") {
		limit, err := c.count("limit", defaultLimit, maxLimit)
		if err != nil {
			return r, err
		}
		r.Limit = &limit
	}
	if r.Count, err = c.flag("count"); err != nil {
		return r, err
	}
	if q.Has("group") || q.Has("aggregate") {
		r.Group = &QueryGroup{By: list(q.Get("group")), Aggregate: list(q.Get("aggregate"))}
	}
	return r, nil
}

// list splits a text at its commas, but for those in brackets and quotes.
func list(text string) (parts []string) {
	if text == "" {
		return nil
	}
	begin, depth, quote := 0, 0, byte(0)
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case quote != 0 && b == '\\':
			i++
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case b == '"' || b == '\'':
			quote = b
		case b == '[' || b == '(':
			depth++
		case b == ']' || b == ')':
			depth--
		case b == ',' && depth <= 0:
			parts = append(parts, text[begin:i])
			begin = i + 1
		}
	}
	return append(parts, text[begin:])
}

// find answers a query, of one pod or with nil of those that it names.
func (c *call) find(p *pod.Pod, r QueryRequest) error {
	q, err := r.compile()
	if err != nil {
		return err
	}
	for _, name := range r.Pods {
		if _, err := c.podNamed(name); err != nil {
			return err
		}
	}
	ctx, cancel, err := c.bounded()
	if err != nil {
		return err
	}
	defer cancel()
	var found pod.Result
	if p != nil {
		found, err = p.Query(ctx, q)
	} else {
		found, err = c.api.pods.QueryAll(ctx, r.Pods, q)
	}
	switch {
	case errors.Is(err, pod.ErrCursor):
		return refuse(CodeBadQuery, "cursor is not one that this query gave as next; leave it out to begin with the first page")
	case errors.Is(err, pod.ErrTooManyGroups):
		return refuse(CodeTooCostly, err.Error())
	case err != nil:
		return inTime(ctx, err)
	}
	result, err := r.result(&found)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, result)
}

// compile checks the request.
func (r *QueryRequest) compile() (q pod.Query, err error) {
	q = pod.Query{Prefix: r.Prefix, Limit: defaultLimit, Cursor: r.Cursor, Count: r.Count}
	if r.Limit != nil {
		if q.Limit = *r.Limit; q.Limit < 1 || q.Limit > maxLimit {
			return q, refuse(CodeBadQuery, "limit is a number from 1 to "+strconv.Itoa(maxLimit))
		}
	}
	if r.Filter != nil {
		if *r.Filter == "" {
			return q, refuse(CodeBadFilter, "filter is empty: leave it out, or say what must hold")
		}
		if q.Filter, err = compiled("filter", *r.Filter); err != nil {
			return q, err
		}
	}
	if q.Select, err = paths("select", r.Select, maxSelect); err != nil {
		return q, err
	}
	sort := make([]string, len(r.Sort))
	for i, s := range r.Sort {
		sort[i] = strings.TrimPrefix(s, "-")
	}
	by, err := paths("sort", sort, maxSort)
	if err != nil {
		return q, err
	}
	for i, path := range by {
		q.Sort = append(q.Sort, pod.Order{Path: path, Descending: strings.HasPrefix(r.Sort[i], "-")})
	}
	if r.Group != nil {
		if q.Select != nil || q.Sort != nil || q.Cursor != "" || r.Limit != nil {
			return q, refuse(CodeBadQuery, "groups are neither selected from nor sorted nor paged: they come all, by their values")
		}
		q.Group, err = r.Group.compile()
	}
	return q, err
}

func (g *QueryGroup) compile() (*pod.Group, error) {
	by, err := paths("group", g.By, maxGroupBy)
	if err != nil {
		return nil, err
	}
	out := &pod.Group{By: by}
	if len(g.Aggregate) > maxAggregate {
		return nil, refuse(CodeBadQuery, fmt.Sprintf("aggregate has at most %d parts", maxAggregate))
	}
	for _, text := range g.Aggregate {
		of, rest, found := strings.Cut(text, "(")
		inner, closed := strings.CutSuffix(rest, ")")
		a := pod.Aggregate{Of: pod.Aggregation(of)}
		if !found || !closed || !slices.Contains([]pod.Aggregation{pod.CountOf, pod.SumOf, pod.AvgOf, pod.MinOf, pod.MaxOf}, a.Of) {
			return nil, refuse(CodeBadQuery, fmt.Sprintf("%q is not count, sum, avg, min or max of a path, such as avg(state.celsius)", text))
		}
		if a.Path, err = filter.ParsePath(inner); err != nil {
			return nil, badFilter(fmt.Sprintf("aggregate: %.100q", text), err)
		}
		out.Fields = append(out.Fields, a)
	}
	return out, nil
}

// paths parses paths that stand in a parameter.
func paths(parameter string, texts []string, most int) ([]filter.Path, error) {
	if len(texts) > most {
		return nil, refuse(CodeBadQuery, fmt.Sprintf("%s has at most %d paths", parameter, most))
	}
	var out []filter.Path
	for _, text := range texts {
		p, err := filter.ParsePath(text)
		if err != nil {
			return nil, badFilter(fmt.Sprintf("%s: %.100q", parameter, text), err)
		}
		out = append(out, p)
	}
	return out, nil
}

// result puts what was found into the answer's form.
func (r *QueryRequest) result(found *pod.Result) (QueryResult, error) {
	out := QueryResult{Items: make([]json.RawMessage, 0, len(found.Items)), Next: found.Next, Unreadable: found.Unreadable}
	for i := range found.Items {
		item := found.Items[i].Selected
		if item == nil {
			e, err := envelope(&found.Items[i].View)
			if err != nil {
				return out, err
			}
			if item, err = encode(e); err != nil {
				return out, err
			}
		}
		out.Items = append(out.Items, item)
	}
	if r.Count {
		out.Count = &found.Count
	}
	for _, q := range found.Quarantined {
		out.Quarantined = append(out.Quarantined, QuarantinedLine{Pod: q.Pod, Name: q.Name, Quarantined: q.Reason.Error()})
	}
	if r.Group != nil {
		out.Groups = r.Group.lines(found.Groups)
	}
	return out, nil
}

func (g *QueryGroup) lines(rows []pod.GroupRow) []GroupLine {
	out := make([]GroupLine, 0, len(rows))
	for _, row := range rows {
		out = append(out, GroupLine{By: named(g.By, row.By), Count: row.Count, Values: named(g.Aggregate, row.Values)})
	}
	return out
}

// named pairs texts with values, without those that are missing.
func named(texts []string, values []filter.Value) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(texts))
	for i, v := range values {
		if v.Kind() != filter.Missing {
			out[texts[i]] = v.AppendJSON(nil)
		}
	}
	return out
}
