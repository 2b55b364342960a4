package main

import (
	"time"

	"github.com/twinsrv/twinsrv/entity"
)

// roomSchema is a JSON Schema with what such schemas have: definitions, references
// to them, bounds, alternatives.
const roomSchema = `{
	"$defs": {"device": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "parts": {"type": "array", "items": {"$ref": "#/$defs/device"}}}}},
	"type": "object",
	"properties": {
		"celsius": {"type": "number", "minimum": -50, "maximum": 80},
		"window": {"enum": ["open", "closed"]},
		"note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
		"devices": {"type": "array", "items": {"$ref": "#/$defs/device"}}
	}
}`

// machine has the shapes that states have: nested, repeated, missing, recursive.
type machine struct {
	Hall  string          `json:"hall"`
	On    bool            `json:"on"`
	Since time.Time       `json:"since"`
	Ran   time.Duration   `json:"ran"`
	Grid  [2][2]float64   `json:"grid"`
	Tags  map[string]uint `json:"tags,omitempty"`
	Raw   []byte          `json:"raw"`
	Root  *part           `json:"root"`
	Parts []part          `json:"parts"`
}

type part struct {
	ID   string `json:"id"`
	Next *part  `json:"next,omitempty"`
}

type (
	fit   struct{ Part part }
	count struct {
		Deep bool `json:"deep"`
	}
	halt struct{}
)

// machines has each kind of handler. None has a name that must be escaped in a
// path: Spectral decodes such keys of paths when it follows references, and then
// misses their parameters.
func machines() entity.Type[machine] {
	return entity.Type[machine]{Name: "machines", Handlers: entity.Handlers[machine]{
		"fit":   entity.On(func(_ *entity.Context, m *machine, f fit) error { m.Parts = append(m.Parts, f.Part); return nil }),
		"halt":  entity.Reply(func(_ *entity.Context, m *machine, _ halt) (part, error) { m.On = false; return part{}, nil }),
		"count": entity.Query(func(_ *entity.Context, m *machine, _ count) (int, error) { return len(m.Parts), nil }),
	}}
}

type (
	purse struct {
		Coins int `json:"coins"`
	}
	earn   struct{ Coins int }
	earned struct{ Coins int }
)

// purses is event-sourced.
func purses() entity.Sourced[purse] {
	return entity.Sourced[purse]{
		Name: "purses",
		Commands: entity.Handlers[purse]{
			"earn": entity.On(func(c *entity.Context, _ *purse, e earn) error { c.Raise(earned(e)); return nil }),
		},
		Events: entity.Events[purse]{
			"earned": entity.Apply(func(p *purse, e earned) { p.Coins += e.Coins }),
		},
	}
}
