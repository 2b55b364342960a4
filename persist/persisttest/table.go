package persisttest

import (
	"maps"
	"slices"
	"sort"
	"strings"
)

// table is a map whose keys can be walked in byte order.
type table[V any] struct {
	keys []string // sorted
	m    map[string]V
}

func newTable[V any]() *table[V] { return &table[V]{m: map[string]V{}} }

func (t *table[V]) clone() *table[V] {
	return &table[V]{keys: slices.Clone(t.keys), m: maps.Clone(t.m)}
}

func (t *table[V]) put(key string, v V) {
	if _, ok := t.m[key]; !ok {
		i, _ := slices.BinarySearch(t.keys, key)
		t.keys = slices.Insert(t.keys, i, key)
	}
	t.m[key] = v
}

func (t *table[V]) delete(key string) {
	if _, ok := t.m[key]; !ok {
		return
	}
	delete(t.m, key)
	i, _ := slices.BinarySearch(t.keys, key)
	t.keys = slices.Delete(t.keys, i, i+1)
}

// each calls fn for the keys that begin with prefix and are not below from, in
// order, until it returns false.
func (t *table[V]) each(prefix, from string, fn func(key string, v V) bool) {
	from = max(prefix, from)
	for i := sort.SearchStrings(t.keys, from); i < len(t.keys); i++ {
		if !strings.HasPrefix(t.keys[i], prefix) || !fn(t.keys[i], t.m[t.keys[i]]) {
			return
		}
	}
}
