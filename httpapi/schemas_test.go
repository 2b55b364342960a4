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

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
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
	w.post(s+"/messages/paint", `{"Side":{"length":1,"to":{}}}`).is(200)
	w.post(s+"/messages/fill", `{"sides":[{"length":1}],"next":{"length":2,"to":{"length":3}},"tags":{"a":"AAE="},"colour":"1 2 3"}`).is(200)
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
	require.Nil(t, turned["required"])
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
	for _, foreign := range []string{"http://", "https://", "//cdn", "innerHTML", "eval("} {
		require.NotContains(t, strings.ReplaceAll(all, w.get("/openapi.json").body, ""), foreign)
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
