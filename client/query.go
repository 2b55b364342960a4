package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
)

// QueryOptions says which entities are looked for. The zero value takes all of
// all pods, by pod and name.
type QueryOptions struct {
	// Pods are those that are looked through; nil means all.
	Pods []string
	// Filter is an expression in CEL that holds for the entities, such as
	// `state.celsius > 21.0`; one that lacks what it asks for is left out. Empty
	// takes all.
	Filter string
	// Prefix is what the names begin with.
	Prefix string
	// Select are the paths that are told, such as "state.celsius", beside what
	// a Twin has with its State; the rest of the State is zero. nil tells all.
	Select []string
	// Sort are the paths by whose values the entities come; one that begins with -
	// turns the order round. What is equal comes by pod and name.
	Sort []string
	// Page is how many entities are read at a time; 0 leaves it to the server.
	Page int
}

// queryBody is the body of a query.
type queryBody struct {
	Pods   []string    `json:"pods,omitzero"`
	Filter string      `json:"filter,omitempty"`
	Prefix string      `json:"prefix,omitempty"`
	Select []string    `json:"select,omitempty"`
	Sort   []string    `json:"sort,omitempty"`
	Limit  int         `json:"limit,omitzero"`
	Cursor string      `json:"cursor,omitempty"`
	Count  bool        `json:"count,omitempty"`
	Group  *queryGroup `json:"group,omitempty"`
}

type queryGroup struct {
	By        []string `json:"by,omitempty"`
	Aggregate []string `json:"aggregate,omitempty"`
}

// queryPage is the answer.
type queryPage struct {
	Items       []json.RawMessage `json:"items"`
	Next        string            `json:"next"`
	Count       int               `json:"count"`
	Groups      []Group           `json:"groups"`
	Quarantined []Unreadable      `json:"quarantined"`
	Unreadable  int               `json:"unreadable"`
}

// find sends a query. One pod is named by the path, which makes its cursor
// another's.
func (c *Client) find(ctx context.Context, o QueryOptions, q queryBody) (page queryPage, err error) {
	q.Filter, q.Prefix = o.Filter, o.Prefix
	path := "/v1/query"
	if len(o.Pods) == 1 {
		path = podPath(o.Pods[0]) + "/query"
	} else {
		q.Pods = o.Pods
	}
	body, err := json.Marshal(q)
	if err != nil {
		return page, fmt.Errorf("the query: %w", err)
	}
	a, err := c.do(ctx, request{method: http.MethodPost, path: path, body: body, bodyType: jsonType, reads: true, repeats: always})
	if err != nil {
		return page, err
	}
	return page, a.into(&page)
}

// Query goes through the entities that match, reading page after page. Sorted or
// not, each that does not change meanwhile comes once. Those that cannot be read,
// and may match or not, come each with an error of the code Quarantined, behind
// which it goes on; of more than 100 the others come as one. Any other error is
// the last that comes.
func Query[S any](ctx context.Context, c *Client, o QueryOptions) iter.Seq2[Twin[S], error] {
	return func(yield func(Twin[S], error) bool) {
		q := queryBody{Select: withEnvelope(o.Select), Sort: o.Sort, Limit: o.Page}
		told := make(map[string]bool) // those that cannot be read
		for {
			page, err := c.find(ctx, o, q)
			if err != nil {
				yield(Twin[S]{}, err)
				return
			}
			for _, raw := range page.Items {
				var t Twin[S]
				if err := json.Unmarshal(raw, &t); err != nil {
					yield(t, fmt.Errorf("the state of %s/%s does not fit a %T: %w", t.Pod, t.Name, t.State, err))
					return
				}
				if !yield(t, nil) {
					return
				}
			}
			if !tell(page, told, yield) {
				return
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				return
			}
		}
	}
}

// tell hands on the entities that cannot be read, each once.
func tell[S any](page queryPage, told map[string]bool, yield func(Twin[S], error) bool) (more bool) {
	for _, u := range page.Quarantined {
		key := u.Pod + "/" + u.Name
		if told[key] {
			continue
		}
		told[key] = true
		if !yield(Twin[S]{Pod: u.Pod, Name: u.Name}, u.failure()) {
			return false
		}
	}
	if n := page.Unreadable - len(page.Quarantined); n > 0 && !told[""] {
		told[""] = true
		return yield(Twin[S]{}, &Error{Code: Quarantined, Detail: fmt.Sprintf("%d more entities cannot be read", n)})
	}
	return true
}

// withEnvelope adds to paths what makes an item a Twin.
func withEnvelope(paths []string) []string {
	if paths == nil {
		return nil
	}
	paths = slices.Clone(paths)
	for _, p := range []string{"pod", "name", "life", "revision", "changed"} {
		if !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	return paths
}

// Count counts the entities that match.
func (c *Client) Count(ctx context.Context, o QueryOptions) (int, error) {
	page, err := c.find(ctx, o, queryBody{Limit: 1, Count: true})
	return page.Count, err
}

// Group is what those entities have in common that have equal values at the
// paths of a grouping.
type Group struct {
	// By has the value at each path; one at which nothing stands is left out.
	By    map[string]any `json:"by"`
	Count int            `json:"count"`
	// Values has what was asked for, by its text; what there is nothing to make of
	// is left out.
	Values map[string]any `json:"values"`
}

// Groups puts the entities that match into groups by their values at paths, and
// makes aggregates of each, such as "avg(state.celsius)": count, sum, avg, min or
// max. They come by their values. Without a path all are one group. Select, Sort
// and Page are not used.
func (c *Client) Groups(ctx context.Context, o QueryOptions, by []string, aggregates ...string) ([]Group, error) {
	page, err := c.find(ctx, o, queryBody{Group: &queryGroup{By: by, Aggregate: aggregates}})
	return page.Groups, err
}
