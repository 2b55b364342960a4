package httpapi

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// documenter turns operations into entries of the OpenAPI document.
type documenter struct {
	schemas huma.Registry
}

func (d documenter) operation(op *operation) *huma.Operation {
	o := &huma.Operation{
		Method: op.method, Path: op.path, OperationID: op.id, Summary: op.summary, Description: op.description, Tags: []string{op.tag},
		Parameters: d.parameters(op), Responses: make(map[string]*huma.Response),
	}
	if op.open {
		o.Security = []map[string][]string{}
	}
	if op.body != nil {
		o.RequestBody = &huma.RequestBody{Description: op.body.description, Content: make(map[string]*huma.MediaType)}
		for _, t := range op.body.types {
			s := d.schema(op.body.shape)
			if op.body.needed != nil {
				d.schemas.SchemaFromRef(s.Ref).Required = op.body.needed
			}
			o.RequestBody.Content[t] = &huma.MediaType{Schema: s}
			if op.body.line != nil {
				o.RequestBody.Content[t] = d.medium(t, op.body.line)
			}
		}
	}
	for _, a := range op.answers {
		o.Responses[strconv.Itoa(a.status)] = d.answer(a)
	}
	d.errors(op, o.Responses)
	return o
}

func (d documenter) schema(t reflect.Type) *huma.Schema {
	if t == nil {
		return &huma.Schema{}
	}
	return d.schemas.Schema(t, true, t.Name())
}

func (d documenter) answer(a answerDoc) *huma.Response {
	r := &huma.Response{Description: a.description, Headers: make(map[string]*huma.Header)}
	if a.shape != nil || a.anyJSON {
		r.Content = map[string]*huma.MediaType{jsonType: {Schema: d.schema(a.shape)}}
	}
	if a.shapes != nil {
		one := &huma.Schema{}
		for _, t := range a.shapes {
			one.AnyOf = append(one.AnyOf, d.schema(t))
		}
		r.Content = map[string]*huma.MediaType{jsonType: {Schema: one}}
	}
	for _, m := range a.media {
		if r.Content == nil {
			r.Content = make(map[string]*huma.MediaType)
		}
		r.Content[m] = d.medium(m, a.line)
	}
	for _, h := range a.headers {
		r.Headers[h] = &huma.Header{Description: headerTexts()[h], Schema: &huma.Schema{Type: huma.TypeString}}
	}
	return r
}

// medium describes a body that is no JSON. One of lines has no schema, which
// would be of the whole; that of a line stands beside.
func (d documenter) medium(name string, line reflect.Type) *huma.MediaType {
	switch {
	case line != nil:
		return &huma.MediaType{Extensions: map[string]any{"x-line-schema": d.schema(line)}}
	case name == bytesType:
		return &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}
	return &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
}

// errors adds the operation's codes, one answer for each status.
func (d documenter) errors(op *operation, into map[string]*huma.Response) {
	codes := append([]Code{CodeBadQuery, CodeForbiddenHost, CodeForbiddenOrigin, CodeInternal}, op.codes...)
	if slices.Contains(op.query, "timeout") {
		codes = append(codes, CodeBadPreference)
	}
	if !op.open {
		codes = append(codes, CodeUnauthorized)
	}
	if op.writes() {
		codes = append(codes, CodeReadOnlyToken)
	} else if i := slices.Index(codes, CodeOutcomeUnknown); i >= 0 || slices.Contains(op.query, "timeout") {
		codes = append(slices.DeleteFunc(codes, func(c Code) bool { return c == CodeOutcomeUnknown }), CodeTimedOut)
	}
	if op.writes() {
		codes = append(codes, CodeBadMessageID, CodeBadCondition)
	}
	if op.method == http.MethodDelete {
		codes = append(codes, CodeMalformed)
	}
	for _, s := range codesByStatus() {
		var here []string
		var retry bool
		for _, c := range s.codes {
			if slices.Contains(codes, c) {
				here = append(here, string(c))
				retry = retry || c.retry()
			}
		}
		if here == nil {
			continue
		}
		r := &huma.Response{
			Description: http.StatusText(s.status) + ": " + strings.Join(here, ", "),
			Content:     map[string]*huma.MediaType{problemType: {Schema: d.problem(here)}},
		}
		if retry {
			r.Headers = map[string]*huma.Header{"Retry-After": {Description: headerTexts()["Retry-After"], Schema: &huma.Schema{Type: huma.TypeInteger}}}
		}
		into[strconv.Itoa(s.status)] = r
	}
}

// problem is the schema of a Problem with one of the codes.
func (d documenter) problem(codes []string) *huma.Schema {
	values := make([]any, len(codes))
	for i, c := range codes {
		values[i] = c
	}
	return &huma.Schema{AllOf: []*huma.Schema{
		d.schema(reflect.TypeFor[Problem]()),
		{Type: huma.TypeObject, Properties: map[string]*huma.Schema{"code": {Type: huma.TypeString, Enum: values}}},
	}}
}

func (d documenter) parameters(op *operation) []*huma.Param {
	var out []*huma.Param
	for _, name := range []string{"pod", "name", "type", "pointer", "id", "file"} {
		if strings.Contains(op.path, "{"+name+"}") {
			out = append(out, op.parameter("path", name))
		}
	}
	for _, name := range op.query {
		out = append(out, op.parameter("query", name))
	}
	if op.conditional {
		out = append(out, op.parameter("header", "If-Match"), op.parameter("header", "If-None-Match"))
	}
	if op.identified {
		out = append(out, op.parameter("header", messageIDHeader))
	}
	if slices.Contains(op.query, "timeout") && !slices.Contains(op.headers, preferHeader) {
		out = append(out, op.parameter("header", preferHeader))
	}
	for _, name := range op.headers {
		out = append(out, op.parameter("header", name))
	}
	return out
}

func (op *operation) parameter(in, name string) *huma.Param {
	p := &huma.Param{Name: name, In: in, Required: in == "path", Schema: &huma.Schema{Type: huma.TypeString}}
	switch name {
	case "pod":
		p.Description, p.Schema.Pattern = "The pod's name.", "^[a-z0-9][a-z0-9._-]{0,63}$"
	case "name":
		p.Description = "The entity's name, percent-encoded as one segment: valid UTF-8 of 1 to 256 bytes, not . or .., without U+0000."
	case "type":
		p.Description = "The message's name."
	case "pointer":
		p.Description = "A JSON pointer (RFC 6901) without its first slash, percent-encoded: members of objects and indexes of arrays, separated by slashes, as many as it takes. " +
			"It is decoded exactly once; a slash that belongs to a member's name is ~1 or %2F, a tilde ~0."
	case "file":
		p.Description = "The file's name."
	case "id":
		p.Description = "The id of a future, as it was given."
	case "condition":
		p.Description = "An expression in CEL over the entity (pod, name, life, revision, changed, state), such as state.celsius < 30.0: only if it holds, in the turn that the request is handled in. An entity that does not exist meets none."
	case "wait":
		p.Description = "How long to wait for the end, such as 500ms or 5s: at most 60s."
	case preferHeader:
		p.Description = "wait=N waits no longer than N seconds. For messages also respond-async: 202 at once, or with wait=N after so many seconds."
	case "pods":
		p.Description = "The pods that are meant, by their names with commas between; all if it is left out."
	case "path":
		p.Description = "Of actors: the path of the one to begin with; the root if it is left out. Of buckets: the place of a number in the state, such as state.celsius."
		p.Required = p.Required || strings.HasSuffix(op.path, "/buckets")
	case "from", "to":
		p.Description = map[string]string{"from": "The first", "to": "The last"}[name] + " revision that is wanted."
		p.Schema = counted()
		if strings.HasSuffix(op.path, "/buckets") {
			p.Description = map[string]string{"from": "When the first bucket begins.", "to": "When the last bucket ends; now if it is left out."}[name]
			p.Schema, p.Required = &huma.Schema{Type: huma.TypeString, Format: "date-time"}, name == "from"
		}
	case "width":
		p.Description = "How much time a bucket has, such as 10m; 1h if it is left out."
	case "life":
		p.Description, p.Schema = "The life that is wanted; the present one if it is left out.", counted()
	case "earlier":
		p.Description, p.Schema = "All lives, one after the other.", &huma.Schema{Type: huma.TypeBoolean, Default: false}
	case "revision":
		p.Description, p.Schema = "As it was at this revision of the present life.", counted()
	case "at":
		p.Description, p.Schema = "As it was at this time.", &huma.Schema{Type: huma.TypeString, Format: "date-time"}
	case "select":
		p.Description = "The paths that are told, with commas between, such as name,state.celsius; all if it is left out."
	case "sort":
		p.Description = "Paths to sort by, with commas between, each with - in front for the greatest first, such as -state.celsius,name."
	case "count":
		p.Description, p.Schema = "Count all matches.", &huma.Schema{Type: huma.TypeBoolean, Default: false}
	case "group":
		p.Description = "Paths whose values make a group, with commas between; empty makes one group of all."
	case "aggregate":
		p.Description = "What is wanted of each group, with commas between: count, sum, avg, min or max of a path, such as avg(state.celsius)."
	case "filter":
		p.Description = "An expression in CEL over the entity (pod, name, life, revision, changed, state), such as state.celsius > 21.0 && name.startsWith(\"tower-\"): only what matches. A missing key is no match, and neither is a result other than true or false."
	case "after":
		p.Description = "The id of an event: the stream goes on behind it. 0 begins with the oldest change that is kept."
		p.Schema = &huma.Schema{Type: huma.TypeInteger, Minimum: number(0)}
	case "depth":
		p.Description = "How deep below it actors are listed."
		p.Schema = &huma.Schema{Type: huma.TypeInteger, Minimum: number(1), Maximum: number(maxDepth), Default: defaultDepth}
	case lastEventHeader:
		p.Description = "The id of the last event that the client has; the stream goes on behind it."
	case "limit":
		p.Description = "The most items that the page has."
		p.Schema = &huma.Schema{Type: huma.TypeInteger, Minimum: number(1), Maximum: number(maxLimit), Default: defaultLimit}
	case "cursor":
		p.Description = "What the page before gave as next."
	case "prefix":
		p.Description = "Lists only names that begin with it."
	case "cascade":
		p.Description, p.Schema = "Delete the pod's entities, too.", &huma.Schema{Type: huma.TypeBoolean, Default: false}
	case "figures":
		p.Description, p.Schema = "With what has happened in each pod since the server's start.", &huma.Schema{Type: huma.TypeBoolean, Default: false}
	case "discard":
		p.Description, p.Schema = "Give up messages that the entity sent and that are not delivered.", &huma.Schema{Type: huma.TypeBoolean, Default: false}
	case "timeout":
		p.Description = "How long to wait for the answer, such as 500ms or 5s: at most 60s, 10s if left out."
	case "If-Match":
		p.Description = `Only if the entity exists (*) or is at one of these revisions ("7-3", ...).`
	case "If-None-Match":
		p.Description = `Only if the entity does not exist (*) or is at none of these revisions.`
	case messageIDHeader:
		p.Description = "A text of the client's own for this message to this entity, of 1 to 200 bytes. A repeat with the same text and message has no second effect and gets the first one's answer, also after a restart, for a day and among the entity's last 256."
	}
	return p
}

func number(n float64) *float64 { return &n }

// counted is the schema of what is counted from 1.
func counted() *huma.Schema { return &huma.Schema{Type: huma.TypeInteger, Minimum: number(1)} }

func headerTexts() map[string]string {
	return map[string]string{
		"ETag":        `The entity's revision: "<life>-<revision>".`,
		"Location":    "The path of what was created.",
		"Retry-After": "Seconds after which the request may succeed.",

		"Content-Disposition":     "A name for the file.",
		"Content-Security-Policy": "What the page may load: what this server gives.",
		appliedHeader:             "The preferences that were honoured.",
	}
}
