package actor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Who is to stop goes ahead, in order, and keeps nobody waiting for more than a few.
func TestTheBacklogIsFair(t *testing.T) {
	actors := func(n int, flags uint32) (rs []*Ref) {
		for range n {
			r := &Ref{}
			r.flags.Store(flags)
			rs = append(rs, r)
		}
		return rs
	}
	stops, turns := actors(3*aheadInRow, urgent), actors(2, 0)
	var b backlog
	for _, r := range turns {
		b.push(r)
	}
	for _, r := range stops {
		b.push(r)
	}
	require.Equal(t, len(stops)+len(turns), b.len())
	want := append([]*Ref{}, stops[:aheadInRow]...)
	want = append(append(want, turns[0]), stops[aheadInRow:2*aheadInRow]...)
	want = append(append(want, turns[1]), stops[2*aheadInRow:]...)
	for i, r := range want {
		require.Same(t, r, b.pop(), i)
	}
	require.Nil(t, b.pop())
	require.Zero(t, b.len())

	// One that always has a signal comes between others, and not instead of them.
	again, one := stops[0], turns[0]
	b.push(one)
	for range aheadInRow {
		b.push(again)
		if b.pop() == one {
			return
		}
	}
	b.push(again)
	require.Same(t, one, b.pop())
}
