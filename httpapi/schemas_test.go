package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/pod"
)

type (
	shape struct {
		Name   string            `json:"name"`
		Sides  []side            `json:"sides"`
		Tags   map[string][]byte `json:"tags"`
		Next   *side             `json:"next"`
		Maybe  *side             `json:"maybe,omitempty"`
		When   time.Time         `json:"when"`
		Took   time.Duration     `json:"took"`
		Colour colour            `json:"colour"`
		Raw    []byte            `json:"raw"`
		Grid   [2][2]float64     `json:"grid"`
	}
	side struct {
		Length float64 `json:"length"`
		To     *side   `json:"to"`
	}
	colour  struct{ R, G, B uint8 }
	turn    struct{ Degrees float64 }
	ask     struct{}
	odder   struct{ Shape shape }
	painted struct{ Side side }
)

func (c colour) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(c.R, c.G, c.B)) }

func (c *colour) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	_, err := fmt.Sscan(s, &c.R, &c.G, &c.B)
	return err
}

func shapes() entity.Type[shape] {
	return entity.Type[shape]{Name: "shapes", Handlers: entity.Handlers[shape]{
		"turn":       entity.On(func(_ *entity.Context, s *shape, m turn) error { s.Name += fmt.Sprint(m.Degrees); return nil }),
		"odd/name {": entity.Reply(func(_ *entity.Context, s *shape, m odder) (side, error) { *s = m.Shape; return side{}, nil }),
		"fill":       entity.On(func(_ *entity.Context, s *shape, m odder2) error { *s = shape(m); return nil }),
		"ask":        entity.Query(func(_ *entity.Context, s *shape, _ ask) (shape, error) { return *s, nil }),
		"paint":      entity.Reply(func(*entity.Context, *shape, painted) ([]side, error) { return nil, nil }),
	}}
}

type odder2 shape

// The document describes the messages and states of the pods that are there, and
// what the server gives is what it says; the world checks every answer.
func TestTypedSchemas(t *testing.T) {
	w := newWorld(t)
	_, err := pod.Start(w.pods, shapes())
	require.NoError(t, err)
	w.contract = contractOf(t, w.get("/openapi.json").body)
	const s = "/v1/pods/shapes/entities/s"
	w.post(s+"/messages/turn", `{"Degrees":90}`).is(200)
	w.get(s).is(200)
	w.get(s + "/state").is(200)
	w.post(s+"/messages/ask", ``).is(200)
	w.post(s+"/messages/paint", `{"Side":{"length":1,"to":{"length":2}}}`).is(200)
	w.post(s+"/messages/fill", `{"name":"s","sides":[{"length":1}],"next":{"length":2,"to":{"length":3}},"tags":{"a":"AAE="},"colour":"1 2 3","when":"2026-01-31T12:00:00Z","took":1,"raw":null,"grid":[[1,2],[3,4]]}`).is(200)
	require.Contains(t, w.get(s+"/state").is(200).body, `1 2 3`)
	w.post(s+"/messages/ask", ``).is(200)
	w.post(s+"/messages/turn", `{"Degres":90}`).is(422, "unknown_field")

	var doc struct {
		Paths      map[string]map[string]any
		Components struct{ Schemas map[string]any }
	}
	w.get("/openapi.json").into(&doc)
	for _, name := range []string{"turn", "ask", "fill", "paint"} {
		require.Contains(t, doc.Paths, "/v1/pods/shapes/entities/{name}/messages/"+name)
	}
	require.Contains(t, doc.Components.Schemas, "shapes.Shape")
	require.Contains(t, doc.Components.Schemas, "shapes.message.Turn")
	for name := range doc.Components.Schemas {
		require.Regexp(t, `^[A-Za-z0-9._-]+$`, name)
	}
	turned := doc.Components.Schemas["shapes.message.Turn"].(map[string]any)
	require.Equal(t, []any{"Degrees"}, turned["required"])
	require.Equal(t, false, turned["additionalProperties"])

	// A pod that is declared later, with a schema, is there as well.
	w.put("/v1/pods/docs", `{"type":"document","schema":{"type":"object","properties":{"a":{"$ref":"#/$defs/n"},"b":{"$ref":"#"}},"$defs":{"n":{"type":"number"}}}}`).is(201)
	w.put("/v1/pods/named", `{"type":"document","schema":{"$id":"https://twins.example/s","type":"object"}}`).is(201)
	w.put("/v1/pods/plain", `{"type":"document"}`).is(201)
	w.contract = contractOf(t, w.get("/openapi.json").body)
	w.put(room+"/state", `{"a":1,"b":{"a":2}}`).is(201)
	w.get(room).is(200)
	w.get(room + "/state").is(200)
	w.get("/openapi.json").into(&doc)
	require.Contains(t, doc.Components.Schemas, "docs.State")
	require.NotContains(t, doc.Components.Schemas, "named.State", "it names places of its own")
	require.NotContains(t, doc.Components.Schemas, "plain.State")
	w.delete("/v1/pods/docs?cascade=true").is(204)
	require.NotContains(t, w.get("/openapi.json").body, "docs.State")

	ids := map[string]bool{}
	for _, methods := range w.contract.Paths {
		for _, op := range methods {
			require.False(t, ids[op.OperationID], op.OperationID)
			ids[op.OperationID] = true
		}
	}
}

// The page loads nothing from elsewhere.
func TestReferencePage(t *testing.T) {
	w := newWorld(t)
	page := w.get("/reference").is(200)
	require.Contains(t, page.header.Get("Content-Type"), "text/html")
	policy := page.header.Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'")
	require.NotContains(t, policy, "unsafe")
	all := page.body
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page.body, -1) {
		require.True(t, strings.HasPrefix(m[1], "/"), m[1])
		all += w.get(m[1]).is(200).body
	}
	all = strings.ReplaceAll(all, w.get("/openapi.json").body, "")
	all = strings.ReplaceAll(all, `xmlns="http://www.w3.org/2000/svg"`, "") // the name of a namespace, which nobody loads
	for _, foreign := range []string{"http://", "https://", "//cdn", "innerHTML", "eval("} {
		require.NotContains(t, all, foreign)
	}
	require.NotContains(t, page.body, "<script>")
	require.NotContains(t, page.body, "style=")
	require.Equal(t, []string{"/reference", "/reference/reference.css", "/reference/reference.js"},
		slices.Sorted(maps.Keys(only(w.contract.Paths, "/reference"))))
}

func only[V any](m map[string]V, prefix string) map[string]V {
	out := map[string]V{}
	for k, v := range m {
		if strings.HasPrefix(k, prefix) {
			out[k] = v
		}
	}
	return out
}

type (
	label struct {
		Text string `json:"text"`
	}
	piece struct {
		ID   string `json:"id"`
		Size *int   `json:"size"`
	}
	parcel struct {
		label
		Weight float64           `json:"weight"`
		Count  uint8             `json:"count"`
		Fast   bool              `json:"fast"`
		Note   string            `json:"note,omitempty"`
		Due    time.Time         `json:"due,omitzero"`
		Sent   time.Time         `json:"sent"`
		Next   *parcel           `json:"next"`
		First  *piece            `json:"first,omitempty"`
		Pieces []piece           `json:"pieces"`
		Loose  []*piece          `json:"loose,omitempty"`
		By     map[string]piece  `json:"by"`
		Tags   map[string]string `json:"tags,omitempty"`
		Grid   [2]int            `json:"grid"`
		Raw    []byte            `json:"raw,omitempty"`
		Colour colour            `json:"colour"`
	}
)

func (w *world) parcels() {
	w.t.Helper()
	_, err := pod.Start(w.pods, entity.Type[gauge]{Name: "parcels", Handlers: entity.Handlers[gauge]{
		"pack": entity.On(func(*entity.Context, *gauge, parcel) error { return nil }),
	}})
	require.NoError(w.t, err)
}

const (
	pack        = "/v1/pods/parcels/entities/p/messages/pack"
	wholeParcel = `{"text":"t","weight":1.5,"count":2,"fast":true,"sent":"2026-01-31T12:00:00Z","next":{"text":"t","weight":1.5,"count":2,"fast":true,"sent":"2026-01-31T12:00:00Z",` +
		`"next":null,"pieces":[],"by":{},"grid":[1,2],"colour":"1 2 3"},"first":{"id":"f","size":1},"pieces":[{"id":"a","size":null},{"id":"b"}],"loose":[{"id":"l"}],` +
		`"by":{"x/~":{"id":"c"}},"tags":{"k":"v"},"grid":[1,2],"raw":"AAE=","colour":"1 2 3","note":"n","due":"2026-01-31T12:00:00Z"}`
)

// A message that lacks something is refused, with the place of all that is
// missing; it is no zero that nobody has sent.
func TestMessagesLackNothing(t *testing.T) {
	w := newWorld(t)
	w.parcels()
	w.post(pack, wholeParcel).is(200)
	var p httpapi.Problem
	w.post(pack, `{"text":"t","count":2,"fast":false,"sent":"2026-01-31T12:00:00Z","pieces":[{"id":"a"},{}],"by":{"x/~":{}},"grid":[1],"colour":"1 2 3"}`).is(422, "schema_violation").into(&p)
	require.Equal(t, []entity.Violation{
		{Pointer: "/weight", Message: "is required, and missing"}, {Pointer: "/pieces/1/id", Message: "is required, and missing"},
		{Pointer: "/by/x~1~0/id", Message: "is required, and missing"}, {Pointer: "/grid", Message: "must have 2 elements, and has 1"},
	}, p.Violations)
	require.Contains(t, p.Detail, "/weight")
	w.post(addG, ``).is(422, "schema_violation")
	w.post(addG, `{}`).is(422, "schema_violation").into(&p)
	require.Equal(t, "/n", p.Violations[0].Pointer)
	w.get(gaugeG).is(404, "no_such_entity")
	var r httpapi.BatchResult
	w.post("/v1/batch", `[{"pod":"gauges","name":"g","type":"add"},{"pod":"gauges","name":"g","type":"add","body":{"n":0}}]`).is(200).into(&r)
	require.Equal(t, httpapi.CodeSchemaViolation, r.Items[0].Problem.Code)
	require.Equal(t, 200, r.Items[1].Status)
	w.post(pack, `{"pieces":[`+strings.Repeat(`{},`, 100)+`{}]}`).is(422, "schema_violation").into(&p)
	require.Len(t, p.Violations, 20)
}

// What is of another type is said in the words of JSON, not of Go.
func TestWrongTypesAreSaidInJSON(t *testing.T) {
	w := newWorld(t)
	w.parcels()
	for body, want := range map[string]string{
		`{"weight":"x"}`: "/weight is a string, and must be a number", `{"count":256}`: "/count is 256, and must be a whole number from 0 to 255",
		`{"next":{"fast":1}}`: "/next/fast is a number, and must be true or false", `{"pieces":{}}`: "/pieces is an object, and must be an array",
		`{"grid":[1,2.5]}`: "/grid/1 is 2.5, and must be a whole number from -9223372036854775808 to 9223372036854775807",
		`{"by":{"k":[]}}`:  "/by/k is an array, and must be an object", `{"text":null}`: "/text is null, and must be a string", `[]`: "the whole is an array, and must be an object",
		`{"raw":7}`: "/raw is a number, and must be a string", `{"due":7}`: "/due is a number, and must be a string", `{"weight":1e999}`: "/weight is 1e999, and must be a number",
	} {
		require.Contains(t, w.post(pack, body).is(400, "malformed").body, want)
	}
	w.docs()
	for message, bodies := range map[string]map[string]string{
		"merge":  {`5`: "the whole is a number, and must be an object", `null`: "the whole is null, and must be an object"},
		"set":    {`{"pointer":7,"value":1}`: "/pointer is a number, and must be a string"},
		"remove": {`[]`: "the whole is an array, and must be an object"},
		"patch":  {`{}`: "a JSON patch is an array", `[7]`: "operation 0: it is no object", `null`: "the whole is null"},
	} {
		for body, want := range bodies {
			a := w.post(room+"/messages/"+message, body).is(400, "malformed")
			require.Contains(t, a.body, want)
			require.NotContains(t, a.body, "entity.")
		}
	}
	for _, a := range []answer{
		w.post("/v1/query", `{"limit":"x"}`), w.post("/v1/query", `{"group":{"by":7}}`), w.post("/v1/batch", `[]`), w.post("/v1/batch", `[{"pod":7}]`),
		w.put("/v1/pods/docs", `{"type":7}`), w.put("/v1/pods/docs", `{"create":{"by":[1]}}`),
	} {
		require.NotRegexp(t, `Go |struct|httpapi\.|pod\.|entity\.|of type|\bint\b`, a.body)
	}
}

// A message is taken exactly if it fits the schema that the document and the
// pod's description give.
func TestMessagesAreAsTheirSchemaSays(t *testing.T) {
	w := newWorld(t)
	w.parcels()
	var d httpapi.PodDescription
	w.get("/v1/pods/parcels").is(200).into(&d)
	require.Len(t, d.Messages, 1)
	var doc struct {
		Components struct{ Schemas map[string]any }
	}
	w.get("/openapi.json").into(&doc)
	described := doc.Components.Schemas["parcels.message.Parcel"].(map[string]any)
	schemas := []*jsonschema.Schema{
		compiled(t, string(d.Messages[0].BodySchema)),
		compiled(t, mustJSON(map[string]any{"$ref": "#/components/schemas/parcels.message.Parcel", "components": map[string]any{"schemas": doc.Components.Schemas}})),
	}
	require.ElementsMatch(t, []any{"text", "weight", "count", "fast", "sent", "pieces", "by", "grid", "colour"}, described["required"])
	verdicts := map[bool]int{}
	for _, body := range variants(t, wholeParcel) {
		resp, err := w.srv.Client().Post(w.srv.URL+pack, "application/json", strings.NewReader(body))
		require.NoError(t, err)
		resp.Body.Close()
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
		require.NoError(t, err)
		for _, s := range schemas {
			err := s.Validate(v)
			require.Equal(t, err == nil, resp.StatusCode == 200, "%s\n%d, and the schema says %v", body, resp.StatusCode, err)
		}
		verdicts[err == nil && resp.StatusCode == 200]++
	}
	require.Greater(t, verdicts[true], 20)
	require.Greater(t, verdicts[false], 100)
	// Lists are short.
	require.NotContains(t, w.get("/v1/pods").is(200).body, "bodySchema")
	compiled(t, string(d.StateSchema))
	compiled(t, string(d.Messages[0].ReplySchema))
	w.docs()
	require.NotContains(t, w.get("/v1/pods/docs").is(200).body, "Schema")
}

func compiled(t *testing.T, text string) *jsonschema.Schema {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.AssertContent()
	require.NoError(t, c.AddResource("mem:///s", v))
	s, err := c.Compile("mem:///s")
	require.NoError(t, err)
	return s
}

// variants are a JSON value, and it with each part left out, replaced, or with
// something beside it.
func variants(t *testing.T, text string) []string {
	t.Helper()
	out := []string{text}
	var whole any
	decode := func() any {
		require.NoError(t, json.Unmarshal([]byte(text), &whole))
		return whole
	}
	var paths [][]any
	var walk func(v any, path []any)
	walk = func(v any, path []any) {
		paths = append(paths, path)
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(v[k], append(slices.Clone(path), k))
			}
		case []any:
			for i := range v {
				walk(v[i], append(slices.Clone(path), i))
			}
		}
	}
	walk(decode(), nil)
	type gone struct{}
	for _, path := range paths[1:] {
		if path[len(path)-1] == "colour" {
			continue // what it takes its type alone knows
		}
		for _, other := range []any{gone{}, nil, true, 1, -1, 1.5, "x", []any{}, map[string]any{}, []any{1, 2, 3}, map[string]any{"more": nil}} {
			whole = nil
			at := decode()
			for _, step := range path[:len(path)-1] {
				switch step := step.(type) {
				case string:
					at = at.(map[string]any)[step]
				case int:
					at = at.([]any)[step]
				}
			}
			switch step := path[len(path)-1].(type) {
			case string:
				if at.(map[string]any)[step] = other; other == (gone{}) {
					delete(at.(map[string]any), step)
				}
			case int:
				if other == (gone{}) {
					continue
				}
				at.([]any)[step] = other
			}
			out = append(out, mustJSON(whole))
		}
	}
	return out
}
