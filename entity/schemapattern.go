package entity

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxPattern is how many instructions a pattern of a schema compiles to at
	// most: matching takes bytes × instructions.
	maxPattern = 1000
	// maxPatterns is how many all patterns of a schema have together, which
	// bounds the time and the memory of compiling them.
	maxPatterns = 20_000
	// perStep is how many instructions run on a byte each in a step of a cost.
	perStep = 32
)

// pattern is a regular expression that knows what it costs.
type pattern struct {
	*regexp.Regexp
	instructions int
	refused      error // why it was not compiled
}

// patterns returns what compiles the patterns of one schema, each once: the
// library asks twice, as it checks the schema and as it compiles it. What costs
// too much is refused later, by checkPatterns, which knows the place.
func patterns() jsonschema.RegexpEngine {
	known, left := map[string]*pattern{}, maxPatterns
	return func(text string) (jsonschema.Regexp, error) {
		if p := known[text]; p != nil {
			return p, nil
		}
		tree, err := syntax.Parse(text, syntax.Perl)
		if err != nil {
			return nil, err
		}
		// They are counted first: compiling writes repetitions out.
		p := &pattern{instructions: instructions(tree)}
		switch n := p.instructions; {
		case n > maxPattern:
			p.refused = fmt.Errorf("the pattern is too costly: it compiles to %d instructions, and at most %d are taken", n, maxPattern)
		case n > left:
			p.refused = fmt.Errorf("the patterns are too costly: together they compile to more than %d instructions", maxPatterns)
		default:
			left -= n
			if p.Regexp, err = regexp.Compile(text); err != nil {
				return nil, err
			}
		}
		known[text] = p
		return p, nil
	}
}

// checkPatterns refuses a schema with a pattern that is too costly.
func checkPatterns(s *jsonschema.Schema) error {
	if p, is := s.Pattern.(*pattern); is && p.refused != nil {
		return fmt.Errorf("at %s/pattern: %w", placeOf(s), p.refused)
	}
	for re := range s.PatternProperties {
		if p, is := re.(*pattern); is && p.refused != nil {
			return fmt.Errorf("at %s/patternProperties: %w", placeOf(s), p.refused)
		}
	}
	return nil
}

// instructions returns how many instructions a pattern compiles to, or a few
// more.
func instructions(re *syntax.Regexp) int { return 2 + size(re) }

func size(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += size(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return max(1, len(re.Rune))
	case syntax.OpCapture, syntax.OpStar:
		return n + 2
	case syntax.OpPlus, syntax.OpQuest:
		return n + 1
	case syntax.OpAlternate:
		return n + len(re.Sub) - 1
	case syntax.OpConcat:
		return max(1, n)
	case syntax.OpRepeat:
		if re.Max < 0 {
			return max(1, re.Min)*n + 2
		}
		return max(1, re.Min*n+(re.Max-re.Min)*(n+1))
	}
	return 1
}

// matching counts the steps of matching a text.
func matching(re jsonschema.Regexp, text string) int {
	n := maxPattern
	if p, ok := re.(*pattern); ok {
		n = p.instructions
	}
	return 1 + (len(text)+1)*n/perStep
}
