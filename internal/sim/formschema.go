package sim

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/pod"
)

// formSchemas are the versions of the schema of forms; one is none.
func formSchemas() []string {
	return []string{
		`{
			"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
			"properties": {
				"n": {"type": "integer", "minimum": 0, "maximum": 20},
				"tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z]{1,3}$"}, "maxItems": 3, "uniqueItems": true},
				"kind": {"enum": ["a", "b", 1]},
				"sub": {"type": "object", "properties": {"x": {"type": "number", "exclusiveMaximum": 5}}, "required": ["x"], "additionalProperties": false},
				"a/b": {"type": "number", "multipleOf": 0.5},
				"longer": false
			}
		}`,
		`{
			"propertyNames": {"maxLength": 5}, "dependentRequired": {"n": ["kind"]},
			"properties": {
				"n": {"anyOf": [{"type": "string", "minLength": 2}, {"type": "integer", "maximum": 10}]},
				"tags": {"contains": {"const": "x"}, "items": {"$ref": "#/$defs/tag"}},
				"kind": {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 3}, {"const": "a"}]},
				"sub": {"if": {"required": ["x"]}, "then": {"properties": {"x": {"minimum": 2}}}, "else": {"required": ["y"]}},
				"a/b": {"enum": [1, [1, "x"], {"x": 1}]},
				"other": {"not": {"type": "string"}, "allOf": [{"maxProperties": 1}]}
			},
			"$defs": {"tag": {"type": ["string", "number"]}}
		}`,
		"",
	}
}

// unfit are the pointers at which a state does not fit a version.
func unfit(version int, state any) []string {
	whole := state.(map[string]any)
	at := map[string]bool{}
	if odd := tooLong(whole, ""); len(odd) > 0 && formSchemas()[version] != "" {
		return []string{slices.Min(odd)}
	}
	switch version {
	case 0:
		unfitFirst(whole, at)
	case 1:
		unfitSecond(whole, at)
	}
	return slices.Sorted(maps.Keys(at))
}

func unfitFirst(whole map[string]any, at map[string]bool) {
	if v, there := whole["n"]; there {
		n, is := v.(json.Number)
		at["/n"] = !is || number(n) != math.Trunc(number(n)) || number(n) < 0 || number(n) > 20
	}
	if v, there := whole["tags"]; there {
		tags, is := v.([]any)
		at["/tags"] = !is || len(tags) > 3
		for i, t := range tags {
			s, is := t.(string)
			at["/tags/"+strconv.Itoa(i)] = !is || !regexp.MustCompile("^[a-z]{1,3}$").MatchString(s)
			at["/tags"] = at["/tags"] || slices.ContainsFunc(tags[:i], func(o any) bool { return alike(o, t) })
		}
	}
	if v, there := whole["kind"]; there {
		n, is := v.(json.Number)
		at["/kind"] = v != "a" && v != "b" && (!is || number(n) != 1)
	}
	if v, there := whole["sub"]; there {
		sub, is := v.(map[string]any)
		x, has := sub["x"]
		at["/sub"] = !is || !has
		if n, is := x.(json.Number); has {
			at["/sub/x"] = !is || number(n) >= 5
		}
		for k := range sub {
			if k != "x" {
				at["/sub/"+escaped(k)] = true
			}
		}
	}
	if v, there := whole["a/b"]; there {
		n, is := v.(json.Number)
		at["/a~1b"] = !is || number(n)*2 != math.Trunc(number(n)*2)
	}
	if _, there := whole["longer"]; there {
		at["/longer"] = true
	}
	maps.DeleteFunc(at, func(_ string, bad bool) bool { return !bad })
}

func unfitSecond(whole map[string]any, at map[string]bool) {
	for k := range whole {
		at["/"+escaped(k)] = len(k) > 5
	}
	if v, there := whole["n"]; there {
		s, isString := v.(string)
		n, isNumber := v.(json.Number)
		integer := isNumber && number(n) == math.Trunc(number(n))
		at["/n"] = !(isString && len(s) > 1 || integer && number(n) <= 10)
		_, has := whole["kind"]
		at[""] = !has
	}
	if tags, is := whole["tags"].([]any); is {
		at["/tags"] = !holdsText(tags, "x")
		for i, t := range tags {
			_, isString := t.(string)
			_, isNumber := t.(json.Number)
			at["/tags/"+strconv.Itoa(i)] = !isString && !isNumber
		}
	}
	if v, there := whole["kind"]; there {
		n, isNumber := v.(json.Number)
		integer, large := isNumber && number(n) == math.Trunc(number(n)), isNumber && number(n) >= 3
		at["/kind"] = v != "a" && integer == large
	}
	if sub, is := whole["sub"].(map[string]any); is {
		x, hasX := sub["x"]
		_, hasY := sub["y"]
		n, isNumber := x.(json.Number)
		at["/sub/x"] = hasX && isNumber && number(n) < 2
		at["/sub"] = !hasX && !hasY
	}
	if v, there := whole["a/b"]; there {
		at["/a~1b"] = !slices.ContainsFunc([]string{"1", `[1,"x"]`, `{"x":1}`}, func(s string) bool { return alike(v, parsed(s)) })
	}
	if v, there := whole["other"]; there {
		_, isString := v.(string)
		o, _ := v.(map[string]any)
		at["/other"] = isString || len(o) > 1
	}
	maps.DeleteFunc(at, func(_ string, bad bool) bool { return !bad })
}

// tooLong are the pointers of numbers that no schema judges.
func tooLong(v any, pointer string) (at []string) {
	switch v := v.(type) {
	case map[string]any:
		for k, child := range v {
			at = append(at, tooLong(child, pointer+"/"+escaped(k))...)
		}
	case []any:
		for i, child := range v {
			at = append(at, tooLong(child, pointer+"/"+strconv.Itoa(i))...)
		}
	case json.Number:
		if v == huge {
			at = append(at, pointer)
		}
	}
	return at
}

// escaped is a name as it is in a pointer.
func escaped(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// huge is a number that is too long.
const huge = "1e5000"

func holdsText(list []any, s string) bool {
	return slices.ContainsFunc(list, func(v any) bool { return v == any(s) })
}

// refuseSchema declares what is no schema.
func (w *process) refuseSchema(n int) {
	bad := []string{
		`{"type":"thing"}`, `[]`, `{"$ref":"http://example.com/other"}`, `{"$schema":"http://json-schema.org/draft-07/schema#"}`, `{"$dynamicRef":"#x"}`,
		`{"pattern":"(a{30}){30}b{200}"}`, `{"properties":{"x":{"minimum":1e5000}}}`, `{"not":`, `{"$ref":"#/$defs/none"}`,
		strings.Repeat(`{"not":`, 120) + "true" + strings.Repeat("}", 120), `{"$ref":"#"}`,
	}
	text := bad[n/8%len(bad)]
	_, _, _, err := w.pods.Declare(context.Background(), forms, pod.Definition{Type: entity.KindDocument, Schema: json.RawMessage(text)})
	if !w.dead && !errors.Is(err, entity.ErrDefinition) {
		w.wrong("%s was declared with the schema %.60s: %v", forms, text, err)
	}
}
