package filter

import (
	"fmt"
	"time"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

const (
	// MaxText is the most bytes an expression may have.
	MaxText = 8 << 10
	// MaxNesting is the most levels that an expression may nest.
	MaxNesting = 100
	// MaxCost is the most work that an expression may need for one entity: each
	// operation costs one, and one more for every element and every 16 bytes
	// that it has to look at. What matches looks at with a regular expression
	// counts once for each of that one's instructions.
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

// estimator says what cel-go's calls cost. It has no state.
type estimator struct{}

func (estimator) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	cost := uint64(1)
	if function == operators.Add && result.Type() == types.ListType {
		return &cost // lists are joined without being copied
	}
	if function == matches {
		return &cost // it has charged the subject for the rest
	}
	for _, a := range args {
		cost += sizeOf(a) / bytesPerCost
	}
	cost += sizeOf(result) / bytesPerCost
	return &cost
}

// sizeOf counts the bytes in a value; each element is like bytesPerCost of them.
func sizeOf(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v))
	case types.Bytes:
		return uint64(len(v))
	case traits.Mapper, traits.Lister:
		if n := treeSize(v.Value()); n > 0 {
			return n
		}
		if s, ok := v.(traits.Sizer); ok {
			n, _ := s.Size().(types.Int)
			return bytesPerCost * uint64(n)
		}
	}
	return 0
}

// treeSize counts what is in a decoded part of a state.
func treeSize(v any) uint64 {
	switch v := v.(type) {
	case map[string]any:
		n := uint64(bytesPerCost)
		for k, inner := range v {
			n += uint64(len(k)) + treeSize(inner)
		}
		return n
	case []any:
		n := uint64(bytesPerCost)
		for _, inner := range v {
			n += treeSize(inner)
		}
		return n
	case string:
		return bytesPerCost + uint64(len(v))
	case []byte:
		return bytesPerCost + uint64(len(v))
	case nil, bool, int64, uint64, float64, time.Time:
		return bytesPerCost
	}
	return 0
}
