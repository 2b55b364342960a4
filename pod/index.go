package pod

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/btree"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/snapshot"
)

const (
	// maxIndexes is the most paths that a pod indexes.
	maxIndexes = 16
	// indexText is how many bytes of a text an index tells apart. Those that are
	// equal so far are looked at.
	indexText = 256
)

// indexing is a pod's indexes; without any it holds nil.
type indexing struct{ atomic.Pointer[indexes] }

// indexes order the names of a pod's entities by the values at some paths, in
// memory. They follow the views: what a view shows is in them before anybody is
// told of it. An entity that left memory stays as its last view was, since that
// is what its record has then. Where neither is certain, the entity is doubtful
// and every query looks at it.
type indexes struct {
	spec  *entity.Spec
	texts []string
	paths []filter.Path

	mu       sync.Mutex
	trees    []*btree.BTreeG[indexed]
	keys     map[string][]string // of each entity, by name
	doubtful map[string]bool
	seen     map[string]bool // those whose view changed while the store is read; nil once that is done
	subject  filter.Subject
}

// indexed is an entry: an entity by the key of its value.
type indexed struct{ key, name string }

func indexedBefore(a, b indexed) bool {
	return a.key < b.key || a.key == b.key && a.name < b.name
}

const indexDegree = 32

// indexPaths parses what a definition indexes.
func indexPaths(pod string, texts []string) ([]filter.Path, error) {
	if len(texts) > maxIndexes {
		return nil, fmt.Errorf("%w: pod %s: it has %d indexes; at most %d are allowed", entity.ErrDefinition, pod, len(texts), maxIndexes)
	}
	var out []filter.Path
	for i, text := range texts {
		p, err := filter.ParsePath(text)
		if err != nil {
			return nil, fmt.Errorf("%w: pod %s: index %q: %v", entity.ErrDefinition, pod, text, err)
		}
		if slices.ContainsFunc(out, func(q filter.Path) bool { return q.String() == p.String() }) {
			return nil, fmt.Errorf("%w: pod %s: index %q stands twice, at %d again", entity.ErrDefinition, pod, text, i)
		}
		out = append(out, p)
	}
	return out, nil
}

func newIndexes(pod string, spec *entity.Spec, texts []string) (*indexes, error) {
	paths, err := indexPaths(pod, texts)
	if err != nil {
		return nil, err
	}
	x := &indexes{spec: spec, texts: texts, paths: paths, keys: map[string][]string{}, doubtful: map[string]bool{}, seen: map[string]bool{}}
	for range paths {
		x.trees = append(x.trees, btree.NewG(indexDegree, indexedBefore))
	}
	return x, nil
}

// viewed notes what an entity's view shows from now on; nil says that the store
// alone knows.
func (i *indexing) viewed(pod, name string, r *snapshot.Record) {
	x := i.Load()
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.seen != nil {
		x.seen[name] = true
	}
	if r == nil {
		x.doubtful[name] = true
		return
	}
	delete(x.doubtful, name)
	x.put(pod, name, r)
}

// left notes, while the store is read for the indexes, what the view of an
// entity shows that leaves memory: what was read of it may be older.
func (i *indexing) left(pod, name string, r *snapshot.Record) {
	if x := i.Load(); x != nil && x.filling() {
		i.viewed(pod, name, r)
	}
}

func (x *indexes) filling() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.seen != nil
}

// put makes the entries of one entity. The lock is held.
func (x *indexes) put(pod, name string, r *snapshot.Record) {
	old := x.keys[name]
	if r.Revision == 0 {
		for at, key := range old {
			x.trees[at].Delete(indexed{key, name})
		}
		delete(x.keys, name)
		return
	}
	if old != nil && mutant.On(mutant.IndexNotUpdated) {
		return
	}
	x.subject.Reset(pod, name, r)
	if old == nil {
		name = strings.Clone(name) // it may be part of something large
		old = make([]string, len(x.paths))
		x.keys[name] = old
	}
	var scratch [128]byte
	for at, p := range x.paths {
		v, _ := p.Value(&x.subject)
		v, _ = v.Cut(indexText)
		key := v.AppendKey(scratch[:0])
		if old[at] == string(key) {
			continue
		}
		if old[at] != "" {
			x.trees[at].Delete(indexed{old[at], name})
		}
		old[at] = string(key)
		x.trees[at].ReplaceOrInsert(indexed{old[at], name})
	}
	x.subject.Reset("", "", nil)
}

// candidates returns the names, in order, of all entities that can match, by the
// index that leaves the fewest. ok is false when none leaves few, or the indexes
// are not ready.
func (p *Pod) candidates(f *filter.Filter) (names []string, ok bool) {
	x := p.indexes.Load()
	if x == nil || f == nil {
		return nil, false
	}
	bounds := make([][]filter.Range, len(x.paths))
	usable := make([]bool, len(x.paths))
	for at := range x.paths {
		bounds[at], usable[at] = f.Ranges(x.paths[at])
	}
	trees, doubtful, most := x.snapshot(usable)
	if len(doubtful) > fewAlways {
		p.refill(x)
		return nil, false
	}
	for at, tree := range trees {
		if ok {
			most = len(names)
		}
		if tree == nil {
			continue
		}
		if some, few := within(tree, bounds[at], most); few {
			names, ok = some, true
		}
	}
	if !ok {
		return nil, false
	}
	names = append(names, doubtful...)
	slices.Sort(names)
	return slices.Compact(names), true
}

// fewAlways is a number of candidates for which an index is taken whatever the
// size of the pod; of more, a quarter of the pod is too many, since reading all
// in order is cheaper.
const fewAlways = 256

// snapshot returns the wanted indexes and the doubtful entities as they are at
// one moment, and how many candidates are few. Nothing is wanted of indexes that
// are not ready.
func (x *indexes) snapshot(wanted []bool) (trees []*btree.BTreeG[indexed], doubtful []string, most int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.seen != nil || !slices.Contains(wanted, true) {
		return nil, nil, 0
	}
	trees = make([]*btree.BTreeG[indexed], len(x.trees))
	for at := range trees {
		if wanted[at] {
			trees[at] = x.trees[at].Clone()
		}
	}
	for name := range x.doubtful {
		doubtful = append(doubtful, name)
	}
	return trees, doubtful, max(fewAlways, len(x.keys)/4)
}

// within returns the names in ranges of an index, unless there are more than
// most.
func within(tree *btree.BTreeG[indexed], ranges []filter.Range, most int) (names []string, ok bool) {
	ok = true
	for _, r := range ranges {
		low, lowOpen := bound(r.Low, r.LowOpen)
		high, highOpen := bound(r.High, r.HighOpen)
		tree.AscendGreaterOrEqual(indexed{key: low}, func(e indexed) bool {
			if e.key > high || highOpen && e.key == high {
				return false
			}
			if lowOpen && e.key == low {
				return true
			}
			if len(names) == most {
				ok = false
				return false
			}
			names = append(names, e.name)
			return true
		})
	}
	return names, ok
}

// bound returns the key of a range's bound. One whose text is as long as an index
// tells apart is not open: entries with its key may lie on either side of it.
func bound(v filter.Value, open bool) (key string, _ bool) {
	v, _ = v.Cut(indexText)
	return string(v.AppendKey(nil)), open && v.Size() < indexText
}
