package cli

import (
	"encoding/json"
	"slices"
	"strings"
)

// shapeText says for people what a JSON Schema wants: the members of an object
// with their types, those that may be missing with a question mark. What it has
// no words for it leaves to the schema itself.
func shapeText(schema json.RawMessage) string {
	s := parseShape(schema)
	if name, is := strings.CutPrefix(s.Ref, "#/$defs/"); is && s.Defs[name] != nil {
		s = parseShape(s.Defs[name])
	}
	members, is := membersOf(s.Properties)
	if !is || s.Type == nil || cell(s.Type) != "object" {
		return cell(schema)
	}
	texts := make([]string, len(members))
	for i, m := range members {
		texts[i] = m.name
		if !slices.Contains(s.Required, m.name) {
			texts[i] += "?"
		}
		if kind := parseShape(m.value).Type; kind != nil {
			texts[i] += " " + cell(kind)
		}
	}
	return "{" + strings.Join(texts, ", ") + "}"
}

// shape is what is looked at of a schema.
type shape struct {
	Type       json.RawMessage            `json:"type"`
	Properties json.RawMessage            `json:"properties"`
	Required   []string                   `json:"required"`
	Ref        string                     `json:"$ref"`
	Defs       map[string]json.RawMessage `json:"$defs"`
}

func parseShape(schema json.RawMessage) (s shape) {
	if json.Unmarshal(schema, &s) != nil {
		return shape{}
	}
	if s.Properties == nil {
		s.Properties = json.RawMessage("{}")
	}
	return s
}
