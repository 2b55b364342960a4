package entity

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxJudged is how many steps a state is judged by a schema in; a second's
	// worth.
	maxJudged = 2_000_000
	// maxListed is up to how many of them what is wrong is listed, which takes
	// memory for each.
	maxListed = 200_000
	// maxNested is how many schemas may stand in one another about one value.
	maxNested = 1000
)

// cost counts the steps in which a state is judged by a schema, before it is: a
// schema can be written so that they double with every level of the state.
type cost struct {
	spent, most int
}

func (c *cost) over() bool { return c.spent > c.most }

// add counts at least the steps of judging v, which stands so deep in the state,
// by a schema that is nested so deep about it.
func (c *cost) add(s *jsonschema.Schema, v any, depth, nested int) {
	c.spent += 1 + depth/8 // of an error, which names the place
	if nested > maxNested {
		c.spent = c.most + 1
	}
	if c.over() || s.Bool != nil {
		return
	}
	if s.Enum != nil {
		c.spent += len(s.Enum.Values)
	}
	for sub := range inPlace(s) {
		c.add(sub, v, depth, nested+1)
	}
	switch v := v.(type) {
	case map[string]any:
		c.object(s, v, depth+1)
	case []any:
		c.array(s, v, depth+1)
	case string:
		c.spent += len(v) / 100
	}
}

func (c *cost) object(s *jsonschema.Schema, object map[string]any, depth int) {
	c.spent += len(object)
	for name, v := range object {
		if c.over() {
			return
		}
		known := s.Properties[name]
		if known != nil {
			c.add(known, v, depth, 0)
		}
		for pattern, sub := range s.PatternProperties {
			c.spent += 1 + len(name)/100
			if pattern.MatchString(name) {
				known = sub
				c.add(sub, v, depth, 0)
			}
		}
		if rest, is := s.AdditionalProperties.(*jsonschema.Schema); is && known == nil {
			c.add(rest, v, depth, 0)
		}
		if s.UnevaluatedProperties != nil && known == nil {
			c.add(s.UnevaluatedProperties, v, depth, 0)
		}
		if s.PropertyNames != nil {
			c.add(s.PropertyNames, name, depth, 0)
		}
	}
}

func (c *cost) array(s *jsonschema.Schema, array []any, depth int) {
	if s.UniqueItems {
		c.values(array)
	}
	for i, v := range array {
		if c.over() {
			return
		}
		switch {
		case i < len(s.PrefixItems):
			c.add(s.PrefixItems[i], v, depth, 0)
		case s.Items2020 != nil:
			c.add(s.Items2020, v, depth, 0)
		}
		for _, sub := range []*jsonschema.Schema{s.Contains, s.UnevaluatedItems} {
			if sub != nil {
				c.add(sub, v, depth, 0)
			}
		}
	}
}

// values counts what is compared to find equal elements.
func (c *cost) values(v any) {
	c.spent++
	switch v := v.(type) {
	case []any:
		for _, child := range v {
			if c.over() {
				return
			}
			c.values(child)
		}
	case map[string]any:
		for _, child := range v {
			if c.over() {
				return
			}
			c.values(child)
		}
	case string:
		c.spent += len(v) / 100
	case json.Number:
		c.spent += len(v) / 10
	}
}

// inPlace goes through the schemas that judge the same value as s does.
func inPlace(s *jsonschema.Schema) iter.Seq[*jsonschema.Schema] {
	return func(yield func(*jsonschema.Schema) bool) {
		var dynamic *jsonschema.Schema // of the dialect itself, which a schema may refer to
		if s.DynamicRef != nil {
			dynamic = s.DynamicRef.Ref
		}
		for _, sub := range [...]*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else, dynamic} {
			if sub != nil && !yield(sub) {
				return
			}
		}
		for _, list := range [...][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
			for _, sub := range list {
				if !yield(sub) {
					return
				}
			}
		}
		if len(s.DependentSchemas) == 0 {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
			if !yield(s.DependentSchemas[name]) {
				return
			}
		}
	}
}

// checkLoops refuses a schema that comes back to itself without going on to a
// part of the value.
func checkLoops(root *jsonschema.Schema) error {
	const open, done = 1, 2
	seen := map[*jsonschema.Schema]int{}
	var follow func(s *jsonschema.Schema, nested int) error
	follow = func(s *jsonschema.Schema, nested int) error {
		switch {
		case seen[s] == open:
			return fmt.Errorf("at %s: it refers to itself about the same value", rootOr(placeOf(s)))
		case seen[s] == done:
			return nil
		case nested > maxNested:
			return errors.New("it nests too deep")
		}
		seen[s] = open
		for sub := range inPlace(s) {
			if err := follow(sub, nested+1); err != nil {
				return err
			}
		}
		seen[s] = done
		return nil
	}
	queue, queued := []*jsonschema.Schema{root}, map[*jsonschema.Schema]bool{root: true}
	for len(queue) > 0 {
		s := queue[0]
		queue = queue[1:]
		if err := follow(s, 0); err != nil {
			return err
		}
		for _, sub := range slices.AppendSeq(parts(s), inPlace(s)) {
			if !queued[sub] {
				queued[sub] = true
				queue = append(queue, sub)
			}
		}
	}
	return nil
}

// parts returns the schemas that judge parts of the value that s judges.
func parts(s *jsonschema.Schema) []*jsonschema.Schema {
	out := slices.Clone(s.PrefixItems)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		out = append(out, s.Properties[name])
	}
	for _, sub := range s.PatternProperties {
		out = append(out, sub)
	}
	rest, _ := s.AdditionalProperties.(*jsonschema.Schema)
	for _, sub := range []*jsonschema.Schema{rest, s.PropertyNames, s.UnevaluatedProperties, s.Items2020, s.Contains, s.UnevaluatedItems} {
		if sub != nil {
			out = append(out, sub)
		}
	}
	return out
}

// placeOf returns the pointer of a schema in the whole one.
func placeOf(s *jsonschema.Schema) string {
	return strings.TrimPrefix(strings.TrimPrefix(s.Location, schemaURL), "#")
}
