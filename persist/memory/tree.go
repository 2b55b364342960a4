package memory

import "sort"

// nodeSize is the most keys a node has. More makes walking faster and changing
// slower.
const nodeSize = 64

// tree is a sorted map: a B+ tree whose nodes are copied before they are
// changed when another tree shares them, so that a copy of the whole costs
// nothing. Nodes that deletions leave small are joined, and empty ones dropped.
//
// The journal is cut at its start and grows at its end, listings start in the
// middle, and a fork must cost nothing: that is what a map, a sorted
// slice or a heap would each do badly. It is not safe for concurrent use.
type tree[K, V any] struct {
	compare func(a, b K) int
	root    *node[K, V]
	owner   *owner
	length  int
}

// owner marks the nodes that a tree may change. It has a size, so that no two
// have the same address.
type owner struct{ _ byte }

// node is a leaf, which has a value for each key, or a branch, which has a child
// for each. A branch's key is not above any key in its child; the first one
// counts as below everything.
type node[K, V any] struct {
	owner    *owner
	keys     []K
	values   []V
	children []*node[K, V]
}

func newTree[K, V any](compare func(a, b K) int) *tree[K, V] {
	t := &tree[K, V]{compare: compare, owner: new(owner)}
	t.root = &node[K, V]{owner: t.owner}
	return t
}

// fork returns a tree with the same contents that goes its own way.
func (t *tree[K, V]) fork() *tree[K, V] {
	other := *t
	t.owner, other.owner = new(owner), new(owner)
	return &other
}

func (n *node[K, V]) leaf() bool { return n.children == nil }

// find returns the index of the first key that is not below k, and whether it
// is k.
func (t *tree[K, V]) find(n *node[K, V], k K) (int, bool) {
	i := sort.Search(len(n.keys), func(i int) bool { return t.compare(n.keys[i], k) >= 0 })
	return i, i < len(n.keys) && t.compare(n.keys[i], k) == 0
}

// child returns the index of the child that has k, if one has.
func (t *tree[K, V]) child(n *node[K, V], k K) int {
	return sort.Search(len(n.keys)-1, func(i int) bool { return t.compare(n.keys[i+1], k) > 0 })
}

func (t *tree[K, V]) get(k K) (v V, ok bool) {
	n := t.root
	for !n.leaf() {
		n = n.children[t.child(n, k)]
	}
	i, ok := t.find(n, k)
	if ok {
		v = n.values[i]
	}
	return v, ok
}

// own returns the node, or a copy of it that the tree may change.
func (t *tree[K, V]) own(n *node[K, V]) *node[K, V] {
	if n.owner == t.owner {
		return n
	}
	c := &node[K, V]{owner: t.owner, keys: append(make([]K, 0, len(n.keys)+1), n.keys...)}
	if n.leaf() {
		c.values = append(make([]V, 0, len(n.values)+1), n.values...)
	} else {
		c.children = append(make([]*node[K, V], 0, len(n.children)+1), n.children...)
	}
	return c
}

func (t *tree[K, V]) put(k K, v V) {
	t.root = t.own(t.root)
	if right := t.insert(t.root, k, v); right != nil {
		t.root = &node[K, V]{owner: t.owner,
			keys: []K{t.root.keys[0], right.keys[0]}, children: []*node[K, V]{t.root, right}}
	}
}

// insert puts a value below a node that the tree owns. When the node had no
// room, the upper part of it is returned as a node of its own.
func (t *tree[K, V]) insert(n *node[K, V], k K, v V) (right *node[K, V]) {
	if n.leaf() {
		i, found := t.find(n, k)
		if found {
			n.values[i] = v
			return nil
		}
		t.length++
		n.keys, n.values = insertAt(n.keys, i, k), insertAt(n.values, i, v)
		return t.split(n, i)
	}
	i := t.child(n, k)
	c := t.own(n.children[i])
	n.children[i] = c
	added := t.insert(c, k, v)
	if added == nil {
		return nil
	}
	n.keys, n.children = insertAt(n.keys, i+1, added.keys[0]), insertAt(n.children, i+1, added)
	return t.split(n, i+1)
}

// split halves a node that has too many keys. What was added at its end is
// likely to be followed by more: then the lower part stays full.
func (t *tree[K, V]) split(n *node[K, V], added int) (right *node[K, V]) {
	if len(n.keys) <= nodeSize {
		return nil
	}
	at := len(n.keys) / 2
	if added == len(n.keys)-1 {
		at = added
	}
	right = &node[K, V]{owner: t.owner}
	n.keys, right.keys = cut(n.keys, at)
	if n.leaf() {
		n.values, right.values = cut(n.values, at)
	} else {
		n.children, right.children = cut(n.children, at)
	}
	return right
}

// delete removes a key and says whether it was there.
func (t *tree[K, V]) delete(k K) bool {
	if _, ok := t.get(k); !ok {
		return false
	}
	t.length--
	t.root = t.own(t.root)
	t.remove(t.root, k)
	for !t.root.leaf() && len(t.root.children) == 1 {
		t.root = t.root.children[0]
	}
	if !t.root.leaf() && len(t.root.children) == 0 {
		t.root = &node[K, V]{owner: t.owner}
	}
	return true
}

// remove removes a key, which is there, below a node that the tree owns.
func (t *tree[K, V]) remove(n *node[K, V], k K) {
	if n.leaf() {
		i, _ := t.find(n, k)
		n.keys, n.values = removeAt(n.keys, i), removeAt(n.values, i)
		return
	}
	i := t.child(n, k)
	c := t.own(n.children[i])
	n.children[i] = c
	t.remove(c, k)
	switch {
	case len(c.keys) == 0:
		n.keys, n.children = removeAt(n.keys, i), removeAt(n.children, i)
	case len(c.keys) > nodeSize/4:
	case i > 0 && len(n.children[i-1].keys)+len(c.keys) <= nodeSize*3/4:
		t.join(n, i-1)
	case i+1 < len(n.children) && len(n.children[i+1].keys)+len(c.keys) <= nodeSize*3/4:
		t.join(n, i)
	}
}

// join brings the children at i and i+1 together.
func (t *tree[K, V]) join(n *node[K, V], i int) {
	left, right := t.own(n.children[i]), n.children[i+1]
	if !left.leaf() {
		// The right one's first key counts as below everything only there.
		left.keys = append(append(left.keys, n.keys[i+1]), right.keys[1:]...)
		left.children = append(left.children, right.children...)
	} else {
		left.keys = append(left.keys, right.keys...)
		left.values = append(left.values, right.values...)
	}
	n.children[i] = left
	n.keys, n.children = removeAt(n.keys, i+1), removeAt(n.children, i+1)
}

// from calls fn for the keys that are not below k, in order, until it returns
// false. fn must not change the tree.
func (t *tree[K, V]) from(k K, fn func(k K, v V) bool) {
	t.walk(t.root, &k, fn)
}

func (t *tree[K, V]) walk(n *node[K, V], from *K, fn func(k K, v V) bool) bool {
	i := 0
	if n.leaf() {
		if from != nil {
			i, _ = t.find(n, *from)
		}
		for ; i < len(n.keys); i++ {
			if !fn(n.keys[i], n.values[i]) {
				return false
			}
		}
		return true
	}
	if from != nil {
		i = t.child(n, *from)
	}
	for ; i < len(n.children); i++ {
		if !t.walk(n.children[i], from, fn) {
			return false
		}
		from = nil
	}
	return true
}

// floor returns the last key that is not above k.
func (t *tree[K, V]) floor(k K) (found K, ok bool) { return t.floorIn(t.root, k) }

func (t *tree[K, V]) floorIn(n *node[K, V], k K) (found K, ok bool) {
	if n.leaf() {
		i, same := t.find(n, k)
		if same {
			return n.keys[i], true
		}
		if i == 0 {
			return found, false
		}
		return n.keys[i-1], true
	}
	// A branch's key may be below all that its child still has.
	for i := t.child(n, k); i >= 0; i-- {
		if found, ok = t.floorIn(n.children[i], k); ok {
			return found, true
		}
	}
	return found, false
}

func insertAt[T any](s []T, i int, v T) []T {
	var none T
	s = append(s, none)
	copy(s[i+1:], s[i:])
	s[i] = v
	return s
}

func removeAt[T any](s []T, i int) []T {
	var none T
	copy(s[i:], s[i+1:])
	s[len(s)-1] = none
	return s[:len(s)-1]
}

// cut returns the parts of a slice before and from an index, the second in
// memory of its own.
func cut[T any](s []T, at int) (before, from []T) {
	from = append(make([]T, 0, len(s)-at+1), s[at:]...)
	clear(s[at:])
	return s[:at], from
}
