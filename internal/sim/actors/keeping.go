package actors

import (
	"fmt"

	"github.com/twinsrv/twinsrv/actor"
)

// notes is the model of a Store: what each key has, by its type and its name.
type notes map[string]any

const visited = actor.Key[int]("visits")

// visit counts in the actor's store, which outlives restarts, and in the
// system's.
func (t *turn) visit() {
	l, w := t.body.life, t.body.w
	w.visits++
	l.watch.visits++
	n := visited.Update(t.ctx.Store(), func(n int) int { return n + 1 })
	all := visited.Update(w.sys.Global(), func(n int) int { return n + 1 })
	if n != l.watch.visits || all != w.visits {
		w.wrong("%v has counted %d visits and not %d, all %d and not %d", l, n, l.watch.visits, all, w.visits)
	}
	l.notes["int visits"], w.notes["int visits"] = n, all
}

// keep changes one of three keys, which are keys of numbers and of texts, in
// the actor's store or the system's, and looks at all there is.
func (t *turn) keep(n int) {
	l, w := t.body.life, t.body.w
	store, model := t.ctx.Store(), l.notes
	if n%2 == 0 {
		store, model = w.sys.Global(), w.notes
	}
	name := fmt.Sprint("key", n%3)
	numbers, texts := actor.Key[int](name), actor.Key[string](name)
	switch n / 6 % 4 {
	case 0:
		numbers.Set(store, n)
		model["int "+name] = n
	case 1:
		texts.Set(store, l.path)
		model["string "+name] = l.path
	case 2:
		numbers.Delete(store)
		delete(model, "int "+name)
	default:
		texts.Delete(store)
		delete(model, "string "+name)
	}
	for k := range 3 {
		keeps(w, store, model, "int", actor.Key[int](fmt.Sprint("key", k)))
		keeps(w, store, model, "string", actor.Key[string](fmt.Sprint("key", k)))
	}
	keeps(w, store, model, "int", visited)
	if store.Len() != len(model) {
		w.wrong("%v finds %d keys, and not %d", l, store.Len(), len(model))
	}
}

func keeps[T any](w *world, store *actor.Store, model notes, kind string, k actor.Key[T]) {
	v, ok := k.Get(store)
	want, known := model[kind+" "+string(k)]
	none := *new(T)
	if ok != known || known && any(v) != want || !known && any(v) != any(none) {
		w.wrong("the %s %q is %v (%v), and not %v (%v)", kind, k, v, ok, want, known)
	}
}
