package actor

import (
	"context"
	"strings"
)

// Selection is a path, absolute or from an actor, that is followed anew with
// each message: it finds whoever is there then. It is a Target. The zero value
// is not usable; Ref.Select, Context.Select and System.Select make one. It may
// be kept and used from any goroutine.
//
// A path is made of names as Ref.Path writes them, of "." (here), ".." (the
// parent) and "*" (every child), divided by slashes: a/b and ./a/b from the
// actor down, ../x a sibling, /user/a/* all children of /user/a.
type Selection struct {
	from  *Ref // where the steps begin
	path  string
	steps []string // unescaped but for everyChild
	each  []bool   // the step is "*"
}

// Select returns the selection of a path from r; a path with a leading slash
// is from the root.
func (r *Ref) Select(path string) Selection {
	s := Selection{from: r, path: path}
	if strings.HasPrefix(path, "/") {
		s.from = r.sys.root
	}
	for step := range strings.SplitSeq(path, "/") {
		if step == "" || step == "." {
			continue
		}
		s.steps = append(s.steps, unescape(step))
		s.each = append(s.each, step == "*")
	}
	return s
}

// Select returns the selection of a path from this actor; see Selection.
func (c *Context) Select(path string) Selection { return c.ref().Select(path) }

// Select returns the selection of a path from /user; see Selection.
func (s *System) Select(path string) Selection { return s.user.Select(path) }

// String returns the path as it was given; a relative one with where it starts.
func (s Selection) String() string {
	if strings.HasPrefix(s.path, "/") {
		return s.path
	}
	return strings.TrimSuffix(s.from.Path(), "/") + "/" + s.path
}

// System returns the system that the selection is of.
func (s Selection) System() *System { return s.from.sys }

// Refs returns whom the path leads to now: actors, some of which may be
// stopping, of one parent by name. It is empty when it leads to nobody.
func (s Selection) Refs() []*Ref {
	found, _, _ := s.find()
	return found
}

// find also returns, when exactly the last step led nowhere and all were plain
// names, the parent that may claim a message for that name.
func (s Selection) find() (found []*Ref, parent *Ref, name string) {
	found = []*Ref{s.from}
	plain := true
	for i, step := range s.steps {
		var next []*Ref
		for _, r := range found {
			switch {
			case s.each[i]:
				plain = false
				next = append(next, r.Children()...)
			case step == "..":
				if r.parent != nil {
					next = appendNew(next, r.parent)
				}
			default:
				if c, ok := r.Child(step); ok {
					next = append(next, c)
				}
			}
		}
		if len(next) == 0 {
			if plain && i == len(s.steps)-1 && checkName(step) == nil {
				return nil, found[0], step
			}
			return nil, nil, ""
		}
		found = next
	}
	return found, nil, ""
}

// appendNew appends r unless it is there: children of one parent lead to it
// more than once.
func appendNew(refs []*Ref, r *Ref) []*Ref {
	if n := len(refs); n > 0 && refs[n-1] == r {
		return refs
	}
	return append(refs, r)
}

// Post sends m to all that the path leads to. When it leads to nobody, the
// parent's OnAbsent may take the message if only the last name of a path
// without "*" is absent; else it is a dead letter. Of one actor the error is
// that of Ref.Post. Of several, those that are full get a dead letter each, and
// the error is nil; an ask is answered by the first that answers or fails.
func (s Selection) Post(m Message) error {
	found, parent, name := s.find()
	switch {
	case len(found) == 1:
		return found[0].Post(m)
	case len(found) == 0:
		if parent == nil || !parent.offer(name, m) {
			s.from.sys.deadLetter(s.String(), m, ErrNotFound)
		}
		return nil
	}
	// Several hold m.Reply now; whoever got it out of a Context pinned it.
	for _, r := range found {
		if err := r.Post(m); err != nil {
			s.from.sys.letters.Publish(ZombieMsg{To: r.Path(), Message: m, Reason: err})
		}
	}
	return nil
}

// Tell is Post without a sender.
func (s Selection) Tell(msg any) error { return s.Post(Message{Payload: msg}) }

// TellFrom is Tell with a sender, which may be nil.
func (s Selection) TellFrom(msg any, sender *Ref) error {
	return s.Post(Message{Payload: msg, Sender: sender})
}

// Ask sends a message and waits for its answer, as Ref.Ask. When the path leads
// to nobody and nobody claims the message, the error wraps ErrNotFound.
func (s Selection) Ask(ctx context.Context, msg any) (any, error) { return askTarget(ctx, s, msg) }
