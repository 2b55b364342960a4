package filter

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

const (
	matches = "matches" // the function

	wideCost        = 5000 // of parsing one class that may have very many characters
	instructionCost = 3    // of compiling one instruction
)

// pattern is a compiled regular expression.
type pattern struct {
	re           *regexp.Regexp
	literal      string // what it looks for, if it is nothing but a text
	instructions int
}

func newPattern(text string) (*pattern, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	p := &pattern{instructions: instructions(parsed) + 2}
	if p.instructions > MaxPattern {
		return nil, fmt.Errorf("regular expression has %d instructions: at most %d are allowed", p.instructions, MaxPattern)
	}
	if s := string(parsed.Rune); parsed.Op == syntax.OpLiteral && parsed.Flags&syntax.FoldCase == 0 && !strings.ContainsRune(s, utf8.RuneError) {
		p.literal = s
	}
	p.re, err = regexp.Compile(text)
	return p, err
}

// instructions counts those that an expression is compiled to, which may be
// fewer but are never more. Repetitions are not expanded for it.
func instructions(re *syntax.Regexp) int {
	n := 0
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCapture, syntax.OpStar:
		n += 2
	case syntax.OpPlus, syntax.OpQuest:
		n++
	case syntax.OpAlternate:
		n += len(re.Sub) - 1
	case syntax.OpRepeat:
		switch {
		case re.Max >= 0:
			n = re.Max*n + re.Max - re.Min
		case re.Min == 0:
			n += 2
		default:
			n = re.Min*n + 1
		}
	}
	return max(n, 1)
}

// patternCost is what it takes at most to parse a pattern.
func patternCost(text string) int {
	wide := strings.Count(text, `\p`) + strings.Count(text, `\P`)
	if strings.Contains(text, "(?") { // a range is folded character by character
		for i := range len(text) - 1 {
			if text[i] == '-' && (text[i+1] == '\\' || text[i+1] >= utf8.RuneSelf) {
				wide++
			}
		}
	}
	return len(text) + wideCost*wide
}

// match looks for the pattern in a text at the subject's expense. Each byte
// costs as many bytes as there are instructions, all of which may look at it.
func (p *pattern) match(s *Subject, text string) verdict {
	if p.literal != "" {
		if !s.spend(len(text)) {
			return none
		}
		return verdictOf(strings.Contains(text, p.literal))
	}
	if !s.spend((len(text) + 1) * p.instructions) {
		return none
	}
	return verdictOf(p.re.MatchString(text))
}

// patternNode is text.matches(constant).
type patternNode struct {
	text    operand
	pattern *pattern
}

func (n *patternNode) judge(s *Subject) verdict {
	v := n.text.get(s)
	if v.form != formString {
		return none
	}
	return n.pattern.match(s, v.text)
}

// matchesCall is a call of matches that cel-go makes. It takes the place of
// cel-go's own, which has no bound for what it does.
type matchesCall struct {
	interpreter.InterpretableCall
	pattern *pattern // nil if it is known at run time alone
}

// newMatchesCall compiles the pattern, if it is a constant.
func (c *compiler) newMatchesCall(call interpreter.InterpretableCall) (*matchesCall, error) {
	m := &matchesCall{InterpretableCall: call}
	if constant, ok := call.Args()[1].(interpreter.InterpretableConst); ok {
		if text, ok := constant.Value().(types.String); ok {
			var err error
			if m.pattern, err = c.pattern(string(text)); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

// pattern compiles a pattern of the expression once.
func (c *compiler) pattern(text string) (*pattern, error) {
	if p, ok := c.patterns[text]; ok {
		return p, nil
	}
	if c.patternCost += patternCost(text); c.patternCost > MaxCost {
		return nil, fmt.Errorf("regular expressions have too many classes of characters")
	}
	p, err := newPattern(text)
	if err == nil {
		c.patterns[text] = p
	}
	return p, err
}

// Eval implements interpreter.Interpretable.
func (m *matchesCall) Eval(vars interpreter.Activation) ref.Val {
	return m.Exec(interpreter.AsFrame(vars))
}

// Exec implements interpreter.InterpretableV2.
func (m *matchesCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	texts, failed := textsOf(frame, m.Args())
	if failed != nil {
		return failed
	}
	s := subjectOf(frame)
	if s == nil {
		return types.NoSuchOverloadErr() // nothing but literals, which nobody evaluates
	}
	p := m.pattern
	if p == nil {
		var err error
		if p, err = s.pattern(texts[1]); err != nil {
			return types.WrapErr(err)
		}
	}
	out := none
	if p != nil {
		out = p.match(s, texts[0])
	}
	if out == none {
		endTooCostly()
	}
	return types.Bool(out == yes)
}

// textsOf evaluates the first two arguments of a call, which are texts. What is not
// nil is the call's result in place of them.
func textsOf(frame *interpreter.ExecutionFrame, args []interpreter.InterpretableV2) (texts [2]string, failed ref.Val) {
	for i, arg := range args[:2] {
		v := arg.Exec(frame)
		text, ok := v.(types.String)
		if !ok {
			return texts, types.MaybeNoSuchOverloadErr(v)
		}
		texts[i] = string(text)
	}
	return texts, nil
}

// pattern compiles a pattern that an entity has, at the subject's expense; it is
// nil if the expression has had its share.
func (s *Subject) pattern(text string) (*pattern, error) {
	if !s.charge(patternCost(text)) {
		return nil, nil
	}
	p, err := newPattern(text)
	if err != nil {
		return nil, err
	}
	if !s.charge(instructionCost * p.instructions) {
		return nil, nil
	}
	return p, nil
}
