package entity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/twinsrv/twinsrv/snapshot"
)

const (
	// maxSchema is how many bytes the text of a schema has at most.
	maxSchema = 64 << 10
	// maxSchemaDepth is how deep it nests at most; the time of checking a schema
	// grows with the third power of it.
	maxSchemaDepth = 100
	// schemaURL is where a schema is said to be, for its references.
	schemaURL = "twinsrv:///schema"
	// draft is the only dialect.
	draft = "https://json-schema.org/draft/2020-12/schema"
	// maxNumber bounds the digits and the exponent of numbers that are judged by
	// their value.
	maxNumber = 1000
)

// schema is a compiled JSON Schema. It is safe for concurrent use.
type schema struct {
	text  json.RawMessage // in canonical form
	whole *jsonschema.Schema
	quick *jsonschema.Schema // fails without saying where
	// unevaluated says that elements of arrays are remembered, since what is
	// left over is judged by a schema.
	unevaluated bool
}

// compileSchema checks and compiles a schema. Its errors say the place in it.
func compileSchema(text []byte) (_ *schema, err error) {
	if len(text) > maxSchema {
		return nil, fmt.Errorf("it has %d bytes, and at most %d are taken", len(text), maxSchema)
	}
	tree, err := snapshot.ParseJSON(text)
	if err != nil {
		return nil, err
	}
	switch tree.(type) {
	case bool, map[string]any:
	default:
		return nil, errors.New("a JSON Schema is an object or a boolean")
	}
	if err := checkSchema(tree, "", 1); err != nil {
		return nil, err
	}
	s := &schema{}
	if s.text, err = snapshot.AppendJSON(nil, tree); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be compiled: %v", p)
		}
	}()
	if s.whole, s.quick, err = compileTree(tree); err != nil {
		return nil, schemaFault(err)
	}
	// The name may stand there as another thing, too.
	s.unevaluated = bytes.Contains(s.text, []byte(`"unevaluatedItems"`))
	return s, checkCompiled(s.whole)
}

// compileTree compiles a schema, and another that only tells whether a value
// fits it: what stands under "if" is judged without noting why.
func compileTree(tree any) (whole, quick *jsonschema.Schema, err error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(patterns())
	if err := c.AddResource(schemaURL, tree); err != nil {
		return nil, nil, err
	}
	if whole, err = c.Compile(schemaURL); err != nil {
		return nil, nil, err
	}
	const quickURL = schemaURL + "/quick"
	if err := c.AddResource(quickURL, map[string]any{"if": map[string]any{"$ref": schemaURL}, "else": false}); err != nil {
		return nil, nil, err
	}
	quick, err = c.Compile(quickURL)
	return whole, quick, err
}

// noLoader refuses references to anything outside the schema.
type noLoader struct{}

func (noLoader) Load(string) (any, error) {
	return nil, errors.New("nothing is loaded: put what is referred to under $defs")
}

// checkSchema refuses what would make judging by a schema unbounded, or another
// dialect.
func checkSchema(v any, pointer string, depth int) error {
	if depth > maxSchemaDepth {
		return fmt.Errorf("it nests deeper than %d levels", maxSchemaDepth)
	}
	switch v := v.(type) {
	case []any:
		for i, child := range v {
			if err := checkSchema(child, pointer+"/"+strconv.Itoa(i), depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			here := pointer + "/" + PointerToken(k)
			if text, is := v[k].(string); is {
				switch {
				case k == "$schema" && strings.TrimSuffix(text, "#") != draft:
					return fmt.Errorf("at %s: the dialect is %s, not %q", here, draft, text)
				case k == "$dynamicRef", k == "$recursiveRef":
					return fmt.Errorf("at %s: %s is not taken; use $ref", here, k)
				}
			}
			if err := checkSchema(v[k], here, depth+1); err != nil {
				return err
			}
		}
	case json.Number:
		if !judgeable(v) {
			return fmt.Errorf("at %s: the number has more than %d digits, or an exponent beyond that", pointer, maxNumber)
		}
	}
	return nil
}

// judgeable reports whether a number is one that can be computed with at a
// reasonable cost.
func judgeable(n json.Number) bool {
	mantissa, exponent, has := cutExponent(string(n))
	if len(mantissa) > maxNumber {
		return false
	}
	if !has {
		return true
	}
	e, err := strconv.ParseInt(exponent, 10, 64)
	return err == nil && e <= maxNumber && e >= -maxNumber
}

// schemaFault says what is wrong with a schema in the words of this package.
func schemaFault(err error) error {
	invalid := (*jsonschema.SchemaValidationError)(nil)
	if errors.As(err, &invalid) {
		if detail := (*jsonschema.ValidationError)(nil); errors.As(invalid.Err, &detail) {
			list := violations(detail)
			return fmt.Errorf("at %s: %s", rootOr(list.Violations[0].Pointer), list.Violations[0].Message)
		}
	}
	return errors.New(strings.ReplaceAll(err.Error(), schemaURL, ""))
}

// judge returns a *SchemaError when a state does not fit, nil when it does.
func (s *schema) judge(state map[string]any) error {
	if pointer, odd := oddNumber(state); odd {
		return violation(pointer, fmt.Sprintf("a number of more than %d digits, or with an exponent beyond that, cannot be judged", maxNumber))
	}
	c := cost{most: maxJudged, unevaluated: s.unevaluated}
	c.add(s.whole, state, 0, 0)
	switch {
	case c.over():
		return violation("", "the state takes too long to be judged by the pod's schema")
	case c.spent <= maxListed:
		return violated(s.whole.Validate(state))
	case s.quick.Validate(state) != nil:
		return violation("", "the state does not fit the pod's schema, and is too large to say where")
	}
	return nil
}

func violation(pointer, message string) error {
	return &SchemaError{Violations: []Violation{{Pointer: pointer, Message: message}}}
}

func violated(err error) error {
	if err == nil {
		return nil
	}
	if detail := (*jsonschema.ValidationError)(nil); errors.As(err, &detail) {
		return violations(detail)
	}
	return violation("", err.Error())
}

// oddNumber returns the pointer of a number that is not judgeable: of several, the
// same one each time.
func oddNumber(v any) (pointer string, odd bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, child := range v {
			if p, is := oddNumber(child); is {
				p = "/" + PointerToken(k) + p
				if !odd || p < pointer {
					pointer, odd = p, true
				}
			}
		}
		return pointer, odd
	case []any:
		for i, child := range v {
			if p, odd := oddNumber(child); odd {
				return "/" + strconv.Itoa(i) + p, true
			}
		}
	case json.Number:
		return "", !judgeable(v)
	}
	return "", false
}
