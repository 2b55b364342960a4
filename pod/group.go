package pod

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/twinsrv/twinsrv/filter"
)

const (
	// MaxGroups is the most groups that a query has.
	MaxGroups = 10_000
	// MaxGroupBytes is the most bytes that the values of all of them, and what is
	// least and greatest in them, have.
	MaxGroupBytes = 16 << 20
)

// Group says how what a query matches is put together.
type Group struct {
	// By are the paths whose values make a group; none makes one of all, which is
	// there though nothing matches.
	By []filter.Path
	// Fields are computed for each group.
	Fields []Aggregate
}

// Aggregate is one number of a group.
type Aggregate struct {
	Of   Aggregation
	Path filter.Path
}

// Aggregation says how the values of a path are put together.
type Aggregation string

// The aggregations. What is missing or null counts for none of them; what is no
// number not for the sum and the average, which are missing without numbers. A
// sum is an integer as long as all of it is and fits 64 bits. The least and the
// greatest are by filter.Value's order.
const (
	CountOf Aggregation = "count"
	SumOf   Aggregation = "sum"
	AvgOf   Aggregation = "avg"
	MinOf   Aggregation = "min"
	MaxOf   Aggregation = "max"
)

// GroupRow is one group.
type GroupRow struct {
	// By are the values of Group.By; missing where its entities have none.
	By []filter.Value
	// Count is the number of its entities.
	Count int
	// Values are those of Group.Fields.
	Values []filter.Value
}

// grouping collects groups.
type grouping struct {
	group   *Group
	byKey   map[string]*groupState
	scratch []byte
	bytes   int // of keys, values and extremes
}

type groupState struct {
	key    string
	by     []filter.Value
	count  int
	fields []tally
}

func newGrouping(g *Group) *grouping { return &grouping{group: g, byKey: map[string]*groupState{}} }

// add counts the subject's entity in its group.
func (g *grouping) add(s *search) error {
	g.scratch = g.scratch[:0]
	for i := range g.group.By {
		g.scratch = s.value(&g.group.By[i]).AppendKey(g.scratch)
	}
	state := g.byKey[string(g.scratch)]
	if state == nil {
		if len(g.byKey) == MaxGroups {
			return fmt.Errorf("%w: there are more than %d; group by something coarser, or filter more", ErrTooManyGroups, MaxGroups)
		}
		if g.bytes += 2 * len(g.scratch); g.bytes > MaxGroupBytes {
			return tooLarge()
		}
		state = g.make(string(g.scratch))
		for i := range g.group.By {
			state.by = append(state.by, s.value(&g.group.By[i]).Clone())
		}
	}
	state.count++
	for i := range g.group.Fields {
		if v := s.value(&g.group.Fields[i].Path); v.Kind() != filter.Missing && v.Kind() != filter.Null {
			if g.bytes += state.fields[i].add(g.group.Fields[i].Of, v); g.bytes > MaxGroupBytes {
				return tooLarge()
			}
		}
	}
	return nil
}

func (g *grouping) make(key string) *groupState {
	state := &groupState{key: key, fields: make([]tally, len(g.group.Fields))}
	g.byKey[key] = state
	return state
}

func tooLarge() error {
	return fmt.Errorf("%w: what is in them has more than %d bytes; group by something shorter, or filter more", ErrTooManyGroups, MaxGroupBytes)
}

// rows returns the groups by their values.
func (g *grouping) rows() []GroupRow {
	if len(g.group.By) == 0 && len(g.byKey) == 0 {
		g.make("")
	}
	var all []*groupState
	for _, s := range g.byKey {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *groupState) int { return bytes.Compare([]byte(a.key), []byte(b.key)) })
	out := make([]GroupRow, 0, len(all))
	for _, s := range all {
		row := GroupRow{By: s.by, Count: s.count}
		for i := range s.fields {
			row.Values = append(row.Values, s.fields[i].value(g.group.Fields[i].Of))
		}
		out = append(out, row)
	}
	return out
}

// tally is what is known of one field of one group.
type tally struct {
	present int
	numbers int
	whole   int64 // the sum, while it is an integer
	broken  bool  // it no longer is
	sum     float64
	rest    float64 // what the sum has lost by rounding
	extreme filter.Value
}

// add takes a value in and returns by how many bytes what is kept has grown.
func (t *tally) add(of Aggregation, v filter.Value) (grown int) {
	t.present++
	switch of {
	case SumOf, AvgOf:
		t.number(v)
	case MinOf, MaxOf:
		c := v.Compare(t.extreme)
		if t.present == 1 || of == MinOf && c < 0 || of == MaxOf && c > 0 {
			grown = v.Size() - t.extreme.Size()
			t.extreme = v.Clone()
		}
	}
	return grown
}

func (t *tally) number(v filter.Value) {
	f, ok := v.Float()
	if !ok {
		return
	}
	t.numbers++
	// Neumaier's sum: the same for every order of entities, but for the last
	// bits.
	sum := t.sum + f
	if math.Abs(t.sum) >= math.Abs(f) {
		t.rest += (t.sum - sum) + f
	} else {
		t.rest += (f - sum) + t.sum
	}
	t.sum = sum
	n, ok := v.Int()
	added := t.whole + n
	if !ok || (added > t.whole) != (n > 0) && n != 0 {
		t.broken = true
		return
	}
	t.whole = added
}

func (t *tally) value(of Aggregation) filter.Value {
	total := t.sum
	if !math.IsInf(total, 0) {
		total += t.rest
	}
	switch {
	case of == CountOf:
		return filter.IntValue(int64(t.present))
	case of == MinOf || of == MaxOf:
		return t.extreme
	case t.numbers == 0:
		return filter.Value{}
	case of == AvgOf && !t.broken:
		return filter.FloatValue(float64(t.whole) / float64(t.numbers))
	case of == AvgOf:
		return filter.FloatValue(total / float64(t.numbers))
	case t.broken:
		return filter.FloatValue(total)
	}
	return filter.IntValue(t.whole)
}
