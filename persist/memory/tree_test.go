package memory

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// requireTree requires that a tree is well formed and has exactly these entries.
func requireTree(t require.TestingT, tr *tree[int, int], want map[int]int) {
	keys := slices.Sorted(maps.Keys(want))
	require.Equal(t, len(keys), tr.length)
	var got []int
	tr.from(-1<<62, func(k, v int) bool {
		require.Equal(t, want[k], v)
		got = append(got, k)
		return true
	})
	require.Equal(t, keys, got)
	depths := map[int]bool{}
	requireNode(t, tr, tr.root, 0, depths, true)
	require.Len(t, depths, 1, "all leaves are equally deep")
}

func requireNode(t require.TestingT, tr *tree[int, int], n *node[int, int], depth int, depths map[int]bool, root bool) {
	require.LessOrEqual(t, len(n.keys), nodeSize)
	if n.leaf() {
		require.Len(t, n.values, len(n.keys))
		depths[depth] = true
		return
	}
	require.Len(t, n.children, len(n.keys))
	require.NotEmpty(t, n.children)
	require.True(t, !root || len(n.children) > 1)
	for i, c := range n.children {
		require.NotEmpty(t, c.keys, "empty nodes are dropped")
		if i > 0 {
			require.LessOrEqual(t, n.keys[i], c.keys[0])
		}
		requireNode(t, tr, c, depth+1, depths, false)
	}
}

func TestATreeIsASortedMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type pair struct {
			tree *tree[int, int]
			want map[int]int
		}
		pairs := []pair{{newTree[int, int](cmp.Compare[int]), map[int]int{}}}
		most := rapid.SampledFrom([]int{10, 300, 100_000}).Draw(rt, "keys")
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			p := pairs[rapid.IntRange(0, len(pairs)-1).Draw(rt, "tree")]
			start, n := rapid.IntRange(0, most).Draw(rt, "start"), rapid.IntRange(1, 400).Draw(rt, "n")
			step := rapid.SampledFrom([]int{1, -1, 7919}).Draw(rt, "step")
			what := rapid.SampledFrom([]string{"put", "put", "delete", "fork", "trim"}).Draw(rt, "what")
			for i := range n {
				k := ((start+i*step)%most + most) % most
				switch what {
				case "put":
					p.tree.put(k, i)
					p.want[k] = i
				case "delete":
					_, ok := p.want[k]
					require.Equal(rt, ok, p.tree.delete(k))
					delete(p.want, k)
				}
			}
			switch what {
			case "fork":
				if len(pairs) < 4 {
					pairs = append(pairs, pair{p.tree.fork(), maps.Clone(p.want)})
				}
			case "trim": // from the front, as the journal is
				for _, k := range slices.Sorted(maps.Keys(p.want))[:len(p.want)*2/3] {
					require.True(rt, p.tree.delete(k))
					delete(p.want, k)
				}
			}
			k := rapid.IntRange(-1, most).Draw(rt, "probe")
			requireProbe(rt, p.tree, p.want, k)
		}
		for _, p := range pairs {
			requireTree(rt, p.tree, p.want)
		}
	})
}

// requireProbe compares the ways to find something.
func requireProbe(t require.TestingT, tr *tree[int, int], want map[int]int, k int) {
	keys := slices.Sorted(maps.Keys(want))
	i, found := slices.BinarySearch(keys, k)
	v, ok := tr.get(k)
	require.Equal(t, found, ok)
	require.Equal(t, want[k], v)
	next, some := 0, false
	tr.from(k, func(k, _ int) bool {
		next, some = k, true
		return false
	})
	require.Equal(t, i < len(keys), some)
	if some {
		require.Equal(t, keys[i], next)
	}
	floor, ok := tr.floor(k)
	if found {
		i++
	}
	require.Equal(t, i > 0, ok)
	if ok {
		require.Equal(t, keys[i-1], floor)
	}
}

func TestForksShareWhatNeitherChanges(t *testing.T) {
	a := newTree[int, int](cmp.Compare[int])
	for i := range 100_000 {
		a.put(i, i)
	}
	b := a.fork()
	a.put(5, -5)
	b.delete(99_999)
	shared := 0
	for i, c := range a.root.children {
		if i < len(b.root.children) && c == b.root.children[i] {
			shared++
		}
	}
	require.GreaterOrEqual(t, shared, len(a.root.children)-2)
	v, _ := b.get(5)
	require.Equal(t, 5, v)
	_, ok := a.get(99_999)
	require.True(t, ok)
}

func TestAscendingKeysFillTheirNodes(t *testing.T) {
	a := newTree[int, int](cmp.Compare[int])
	for i := range 10_000 {
		a.put(i, i)
	}
	leaves := 0
	var count func(n *node[int, int])
	count = func(n *node[int, int]) {
		if n.leaf() {
			leaves++
		}
		for _, c := range n.children {
			count(c)
		}
	}
	count(a.root)
	require.LessOrEqual(t, leaves, 10_000/nodeSize+2)
}
