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
		Method: op.method, Path: op.path, OperationID: op.id, Summary: op.summary, Description: op.description,
		Parameters: d.parameters(op), Responses: make(map[string]*huma.Response),
	}
	if op.body != nil {
		o.RequestBody = &huma.RequestBody{Description: op.body.description, Content: make(map[string]*huma.MediaType)}
		for _, t := range op.body.types {
			o.RequestBody.Content[t] = &huma.MediaType{Schema: d.schema(op.body.shape)}
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
	if a.bytes {
		r.Content = map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}
	}
	for _, h := range a.headers {
		r.Headers[h] = &huma.Header{Description: headerTexts()[h], Schema: &huma.Schema{Type: huma.TypeString}}
	}
	return r
}

// errors adds the operation's codes, one answer for each status.
func (d documenter) errors(op *operation, into map[string]*huma.Response) {
	codes := append([]Code{CodeForbiddenHost, CodeForbiddenOrigin, CodeInternal}, op.codes...)
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
	for _, name := range []string{"pod", "name", "type"} {
		if strings.Contains(op.path, "{"+name+"}") {
			out = append(out, parameter("path", name))
		}
	}
	for _, name := range op.query {
		out = append(out, parameter("query", name))
	}
	if op.conditional {
		out = append(out, parameter("header", "If-Match"), parameter("header", "If-None-Match"))
	}
	if op.identified {
		out = append(out, parameter("header", messageIDHeader))
	}
	return out
}

func parameter(in, name string) *huma.Param {
	p := &huma.Param{Name: name, In: in, Required: in == "path", Schema: &huma.Schema{Type: huma.TypeString}}
	switch name {
	case "pod":
		p.Description, p.Schema.Pattern = "The pod's name.", "^[a-z0-9][a-z0-9._-]{0,63}$"
	case "name":
		p.Description = "The entity's name, percent-encoded as one segment: valid UTF-8 of 1 to 256 bytes, not . or .., without U+0000."
	case "type":
		p.Description = "The message's name."
	case "limit":
		p.Description = "The most items that the page has."
		p.Schema = &huma.Schema{Type: huma.TypeInteger, Minimum: number(1), Maximum: number(maxLimit), Default: defaultLimit}
	case "cursor":
		p.Description = "What the page before gave as next."
	case "prefix":
		p.Description = "Lists only names that begin with it."
	case "cascade":
		p.Description, p.Schema = "Delete the pod's entities, too.", &huma.Schema{Type: huma.TypeBoolean, Default: false}
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

func headerTexts() map[string]string {
	return map[string]string{
		"ETag":        `The entity's revision: "<life>-<revision>".`,
		"Location":    "The path of what was created.",
		"Retry-After": "Seconds after which the request may succeed.",

		"Content-Disposition": "A name for the file.",
	}
}
