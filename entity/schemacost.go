package entity

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
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
	unevaluated bool // elements of arrays are remembered
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
	if s.Const != nil {
		c.compare(v, *s.Const)
	}
	if s.Enum != nil {
		for _, value := range s.Enum.Values {
			c.compare(v, value)
		}
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
		c.spent += long(v)
		if s.Pattern != nil {
			c.spent += matching(s.Pattern, v)
		}
	case json.Number:
		c.spent += number(v) * computing(s)
	}
}

// computing returns how often a schema computes with a number, at most.
func computing(s *jsonschema.Schema) int {
	n := 1
	if s.Minimum != nil || s.Maximum != nil || s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil {
		n++
	}
	if s.MultipleOf != nil {
		n++
	}
	return n
}

// long counts the steps of going through a text.
func long(text string) int { return len(text) / 100 }

// number counts the steps of computing with a number: those of many digits take
// a multiple.
func number(n json.Number) int {
	mantissa, exponent, has := cutExponent(string(n))
	digits := len(mantissa)
	if has {
		e, _ := strconv.Atoi(exponent) // a judgeable one
		digits += max(e, -e)
	}
	return 2 + max(0, digits-16)/4
}

func (c *cost) object(s *jsonschema.Schema, object map[string]any, depth int) {
	c.spent += len(object) + len(s.Required)/10
	for _, names := range s.DependentRequired {
		c.spent += 1 + len(names)/10
	}
	for name, v := range object {
		if c.over() {
			return
		}
		c.spent += long(name)
		known := s.Properties[name]
		if known != nil {
			c.add(known, v, depth, 0)
		}
		for pattern, sub := range s.PatternProperties {
			if c.spent += 2 * matching(pattern, name); c.over() { // here, and when it is judged
				return
			}
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
	if c.unevaluated {
		c.spent += len(array)
	}
	if s.UniqueItems {
		c.unique(array)
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

// unique counts the steps of finding equal elements: a few are compared, each
// with each, and more are hashed.
func (c *cost) unique(array []any) {
	if len(array) > 20 {
		c.values(array)
		return
	}
	for i, x := range array {
		for _, y := range array[:i] {
			c.compare(x, y)
		}
	}
}

// compare counts the steps of comparing two values, as if they were equal as
// long as they have the same shape.
func (c *cost) compare(x, y any) {
	if c.spent++; c.over() {
		return
	}
	switch x := x.(type) {
	case []any:
		if y, ok := y.([]any); ok && len(x) == len(y) {
			for i, child := range x {
				c.compare(child, y[i])
			}
		}
	case map[string]any:
		if y, ok := y.(map[string]any); ok && len(x) == len(y) {
			for name, child := range x {
				c.spent += long(name)
				if other, ok := y[name]; ok {
					c.compare(child, other)
				}
			}
		}
	case string:
		if y, ok := y.(string); ok && len(x) == len(y) {
			c.spent += long(x)
		}
	case json.Number:
		if y, ok := y.(json.Number); ok {
			c.spent += number(x) + number(y)
		}
	}
}

// values counts the steps of hashing a value.
func (c *cost) values(v any) {
	if c.spent++; c.over() {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, child := range v {
			c.values(child)
		}
	case map[string]any:
		for name, child := range v {
			c.spent += long(name)
			c.values(child)
		}
	case string:
		c.spent += long(v)
	case json.Number:
		c.spent += number(v)
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
		for _, dependency := range s.Dependencies { // the old keyword, which is still taken
			if sub, is := dependency.(*jsonschema.Schema); is && !yield(sub) {
				return
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

// checkCompiled refuses a schema that comes back to itself without going on to a
// part of the value, one of another dialect, of which cost knows nothing, and
// one with patterns that are too costly.
func checkCompiled(root *jsonschema.Schema) error {
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
		if s.DraftVersion != 2020 {
			return fmt.Errorf("it refers to %s, which is of another dialect", s.Location)
		}
		if err := cmp.Or(checkPatterns(s), follow(s, 0)); err != nil {
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
