package filter

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

const (
	// MaxText is the most bytes an expression may have.
	MaxText = 8 << 10
	// MaxNesting is the most levels that an expression may nest.
	MaxNesting = 100
	// MaxLists is the most lists and objects that an expression may make, however
	// many elements they have. Each map and filter makes two.
	MaxLists = 100
	// MaxCost is the most work that an expression may need for one entity: each
	// operation costs one, and one more for every element and every 16 bytes
	// that it has to look at. What matches looks at with a regular expression
	// counts once for each of that one's instructions, a text that split takes
	// apart once for each byte, and a zone of time 200.
	MaxCost = 200_000
	// MaxPattern is the most instructions that a regular expression may have
	// when it is compiled; about one for each character or class, with those
	// that are repeated counted as often: [0-9a-f]{32} has 32 and the end.
	MaxPattern = 1000

	bytesPerCost = 16
)

// spend adds the cost of looking at so many bytes; false says that the
// expression has had its share.
func (s *Subject) spend(size int) bool {
	if size < bytesPerCost {
		return true // the text's own bound holds these down
	}
	return s.charge(size / bytesPerCost)
}

// compares adds the cost of comparing two values, as spend does.
func (s *Subject) compares(v, w Value) bool {
	return v.form != w.form || v.form != formString && v.form != formBytes || s.spend(min(len(v.text), len(w.text)))
}

// charge adds a cost, as spend does.
func (s *Subject) charge(cost int) bool {
	if s.spent += cost; s.spent > MaxCost {
		s.failed = errTooCostly(s)
		return false
	}
	return true
}

func errTooCostly(s *Subject) error {
	return fmt.Errorf("%s/%s: %w: it needs more than %d steps for one entity", s.pod, s.name, ErrTooCostly, MaxCost)
}

// sizeOf counts the bytes in a value, each element like bytesPerCost of them, but not
// beyond what anybody can pay for: what an expression has made may hold the same list
// thousands of times.
func sizeOf(v ref.Val) int {
	m := measure{left: (MaxCost + 1) * bytesPerCost}
	all := m.left
	m.value(v)
	return all - max(m.left, 0)
}

// measure counts down by the bytes that it has found.
type measure struct{ left int }

func (m *measure) value(v ref.Val) {
	switch v := v.(type) {
	case types.String:
		m.left -= len(v)
	case types.Bytes:
		m.left -= len(v)
	case traits.Lister, traits.Mapper:
		n, _ := v.(traits.Sizer).Size().(types.Int)
		least := m.left - int(n)*bytesPerCost
		m.tree(v.Value())
		m.left = min(m.left, least) // whatever it is made of
	}
}

// element is value for what is in a list or an object.
func (m *measure) element(v any) {
	m.left -= bytesPerCost
	if m.left <= 0 {
		return
	}
	if v, ok := v.(ref.Val); ok {
		m.value(v)
		return
	}
	m.tree(v)
}

// tree counts what is in the decoded part of a state, or in what an expression has made.
func (m *measure) tree(v any) {
	switch v := v.(type) {
	case string:
		m.left -= len(v)
	case []byte:
		m.left -= len(v)
	case []string:
		for _, inner := range v {
			m.element(inner)
		}
	case []any:
		for _, inner := range v {
			m.element(inner)
		}
	case []ref.Val:
		for _, inner := range v {
			m.element(inner)
		}
	case map[string]any:
		for k, inner := range v {
			m.left -= len(k)
			m.element(inner)
		}
	case map[ref.Val]ref.Val:
		for k, inner := range v {
			m.value(k)
			m.element(inner)
		}
	}
}
