package actors

import (
	"cmp"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/actor"
)

// chosen is a selection, and where it begins: at an actor, or at the root or
// /user when that is nil.
type chosen struct {
	actor.Selection
	path string
	from *life
}

// finds looks whether a selection leads to whom the model has there. Of the
// runtime's own, and of workers, which routers replace, nothing is known; so it is
// not known either whether a path that goes up from workers leads to their router.
func (w *world) finds(sel chosen, found []*actor.Ref) {
	up := strings.Contains(sel.path, "..")
	known := func(l *life) bool { return l != nil && !l.resized() && (!up || !l.isRouter) }
	var got []*life
	for _, r := range found {
		if l := w.byRef[r]; known(l) {
			got = append(got, l)
		}
	}
	var want []*life
	for _, p := range w.lead(sel.from, sel.path) {
		if known(p.life) {
			want = append(want, p.life)
		}
	}
	if !slices.Equal(got, want) {
		w.wrong("%v leads to %v, and not to %v", sel.Selection, got, want)
	}
}

// place is an actor of the model, or the runtime's own of that path.
type place struct {
	path string
	life *life
}

// lead follows a path through the model.
func (w *world) lead(from *life, path string) []place {
	at := []place{{path: "/user"}}
	switch {
	case strings.HasPrefix(path, "/"):
		at[0].path = "/"
	case from != nil:
		at[0] = place{from.path, from}
	}
	for step := range strings.SplitSeq(path, "/") {
		if step == "" || step == "." {
			continue
		}
		var next []place
		for _, p := range at {
			if step != ".." {
				next = append(next, w.under(p, step)...)
			} else if up := p.above(); up.path != "" && !slices.Contains(next, up) {
				next = append(next, up)
			}
		}
		at = next
	}
	return at
}

// above is the parent; the zero place when there is none.
func (p place) above() place {
	switch {
	case p.life != nil && p.life.parent != nil:
		return place{p.life.parent.path, p.life.parent}
	case p.life != nil:
		return place{path: "/user"}
	case p.path == "/":
		return place{}
	}
	up := p.path[:strings.LastIndexByte(p.path, '/')]
	return place{path: cmp.Or(up, "/")}
}

// under are the children with that name, or all of them, by name.
func (w *world) under(p place, name string) (all []place) {
	switch {
	case p.life == nil && p.path == "/":
		for _, path := range []string{"/system", "/user"} {
			if name == "*" || path == "/"+name {
				all = append(all, place{path: path})
			}
		}
		return all
	case p.life == nil && p.path != "/user":
		return nil // the runtime's own have no children of ours
	}
	for _, l := range w.lives {
		if l.parent == p.life && !l.over && !l.replaced && (name == "*" || escaped(l.name()) == name) {
			all = append(all, place{l.path, l})
		}
	}
	slices.SortFunc(all, func(a, b place) int { return strings.Compare(a.life.name(), b.life.name()) })
	return all
}
