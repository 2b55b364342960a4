package actor

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A generated name is one name, whether it is kept as a number or given as a
// string.
func TestNumbersStandForGeneratedNamesOnly(t *testing.T) {
	for _, n := range []uint32{1, 35, 36, 1295, 1296, math.MaxUint32} {
		name := string(appendNumber(nil, uint64(n)))
		require.Equal(t, n, numberOf(name), name)
		require.Equal(t, name, (&Ref{number: n}).Name())
	}
	for _, name := range []string{"", "$", "$0", "$01", "$A", "$a_", "a", "room-1", "$" + strconv.FormatUint(math.MaxUint32+1, 36), "$zzzzzzz", "$zzzzzzzzzzzzz"} {
		require.Zero(t, numberOf(name), name)
	}
}

// Children are found, sorted and dropped by name, few or many of them.
func TestKidsAreFoundByName(t *testing.T) {
	for _, n := range []int{3, fewKids, fewKids + 1, 100} {
		k := &kids{}
		var names []string
		for i := range n {
			c := &Ref{name: "room-" + strconv.Itoa(i)}
			if i%2 == 0 {
				c = &Ref{number: uint32(i*i + 1)}
			}
			require.Nil(t, k.get(c.Name()))
			k.put(c)
			names = append(names, c.Name())
			require.Same(t, c, k.get(c.Name()))
		}
		slices.Sort(names)
		all := k.all()
		slices.SortFunc(all, byName)
		require.Len(t, all, n)
		for i, c := range all {
			require.Equal(t, names[i], c.Name())
			require.False(t, k.drop(&Ref{name: c.name, number: c.number}), "another of that name")
			require.True(t, k.drop(c))
			require.False(t, k.drop(c))
			require.Nil(t, k.get(c.Name()))
			require.Equal(t, n-i-1, k.len())
		}
	}
}

// Generated names pass over those that are taken, also after four billion.
func TestGeneratedNamesAreNotTaken(t *testing.T) {
	f := &family{}
	f.kids.put(&Ref{number: 2})
	_, a := f.nextName()
	_, b := f.nextName()
	require.Equal(t, []uint32{1, 3}, []uint32{a, b})
	f.named = math.MaxUint32
	name, number := f.nextName()
	require.Zero(t, number)
	require.True(t, strings.HasPrefix(name, "$"), name)
	f.kids.put(&Ref{name: name})
	next, _ := f.nextName()
	require.NotEqual(t, name, next)
}
