package actors

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/actor"
)

// selecting sends a letter, or an ask, to a selection from outside.
func (w *world) selecting(s step) {
	sel := chosen{w.sys.Select(s.path), s.path, nil}
	if l := w.lifeAt(s.slot); l != nil && !strings.HasPrefix(s.path, "/") {
		sel = chosen{l.ref.Select(s.path), s.path, l}
	}
	w.selected(sel, s.letter, nil)
}

// selected posts to a selection. Of one actor it is as if posted to that.
func (w *world) selected(sel chosen, text *letter, by *life) {
	found := sel.Refs()
	w.finds(sel, found)
	from := "select"
	var sender *life
	var ref *actor.Ref
	if by != nil {
		from, sender, ref = by.key(), by, by.ref
	}
	for _, r := range found {
		if l := w.byRef[r]; l != nil && l.props.policy == actor.Block && by == nil {
			return // the sender would have to wait
		}
	}
	p := w.parcel(text, from, sender, nil)
	p.many = len(found) > 1
	if len(found) == 1 {
		p.to = w.byRef[found[0]]
		p.many = p.to == nil || p.to.workers
	}
	w.note("%v to %v, who are %v", p, sel.Selection, found)
	if by == nil && p.id%3 == 0 {
		p.from = fmt.Sprint("select", p.id)
		a := &asking{w: w, p: p, began: w.now(), limit: 2e9}
		p.ask = a
		w.asks = append(w.asks, a)
		a.dead = len(found) == 0 || p.many
		a.refused, a.unheard = p.many, p.many
		w.goes(func() { w.askBy(sel, a, step{n: []int{0, 1, 0, 1, askCancelled, askTooLate}[p.id/3%6]}) })
		p.many, p.to = true, nil // who is there when it is sent is not known yet
		return
	}
	if by != nil && !p.many && p.to != nil && p.to.props.policy == actor.Block {
		p.many = true // it is refused, or a dead letter, by what the caller is
	}
	var err error
	if by == nil {
		err = sel.Tell(p.payload())
	} else {
		err = sel.TellFrom(p.payload(), ref)
	}
	switch {
	case p.many && err != nil && errors.Is(err, actor.ErrMailboxFull):
		p.end("refused", nil)
	default:
		p.posted(err)
	}
}

// sending sends a letter to a path.
func (w *world) sending(s step) {
	p := w.parcel(s.letter, "send", nil, nil)
	ref, err := w.sys.Lookup(s.path)
	if err != nil && !errors.Is(err, actor.ErrNotFound) {
		w.wrong("Lookup of %s: %v", s.path, err)
	}
	if p.to = w.byRef[ref]; p.to != nil {
		p.many = p.to.workers
		if p.to.props.policy == actor.Block {
			p.end("not sent", nil)
			return
		}
	}
	w.note("%v to %s", p, s.path)
	dead := w.letters
	err = w.sys.Send(s.path, actor.Message{Payload: p.payload()})
	if p.to == nil && ref == nil && p.ends == 0 {
		w.wrong("%v to nobody at %s has not ended (%v, %d dead letters)", p, s.path, err, w.letters-dead)
	}
	p.posted(err)
}

// looking compares what the runtime says of its tree with what is known.
func (w *world) looking() {
	seen := 0
	for r := range w.sys.Root().Tree() {
		seen++
		l := w.byRef[r]
		if found, err := w.sys.Lookup(r.Path()); err != nil || found != r {
			w.wrong("Lookup of %v finds %v (%v)", r, found, err)
		}
		if r.System() != w.sys || r.System().Name() != systemName || r.String() != r.Path() {
			w.wrong("%v is of another system", r)
		}
		kids := r.Children()
		if !slices.IsSortedFunc(kids, func(a, b *actor.Ref) int { return strings.Compare(a.Name(), b.Name()) }) {
			w.wrong("the children of %v are not sorted", r)
		}
		if l == nil {
			continue
		}
		if l.over || l.name() != r.Name() {
			w.wrong("%v is in the tree, though its end is %v", l, l.over)
		}
		if n := r.MailboxLen(); r.Load() < n || n < len(l.front) && !l.ref.Stopped() && len(l.delegates) == 0 {
			w.wrong("%v has %d messages, a load of %d, and %d in front", l, n, r.Load(), len(l.front))
		}
		if c := r.MailboxCap(); c != l.props.capacity && !l.isRouter && l.parent != nil && !l.parent.isRouter && !r.Stopped() {
			w.wrong("%v has a capacity of %d and not %d", l, c, l.props.capacity)
		}
	}
	for _, l := range w.lives {
		if !l.over && !l.replaced {
			seen--
		}
	}
	w.note("%d actors are in the tree beside ours", seen)
	w.lookingAtSome()
	untold := 0 // dead letters about such are only counted
	for _, told := range w.relayed {
		if w.halted && !told {
			untold++
		}
	}
	if n := w.sys.DeadLetters().Count(); n < w.letters || n > w.letters+uint64(untold) && !w.overheard {
		w.wrong("%d dead letters are counted, and there were %d", n, w.letters)
	}
}

// lookingAtSome leaves the tree in the middle: what comes until then is what
// comes first.
func (w *world) lookingAtSome() {
	all := slices.Collect(w.sys.Root().Tree())
	var some []*actor.Ref
	for r := range w.sys.Root().Tree() {
		if some = append(some, r); len(some) > len(all)/2 {
			break
		}
	}
	if !slices.Equal(some, all[:len(some)]) {
		w.wrong("the tree begins with %v, and then with %v", all, some)
	}
}

// relaying sends a dead letter to the actor that is for those, which passes it
// on to all who hear of them.
func (w *world) relaying() {
	if w.halted {
		return
	}
	to := fmt.Sprint("relay ", len(w.relayed))
	w.relayed = append(w.relayed, false)
	z := actor.ZombieMsg{To: to, Message: actor.Message{Payload: relay(len(w.relayed) - 1)}, Reason: errNever}
	if err := w.sys.Send("/system/deadletters", actor.Message{Payload: z}); err != nil {
		w.wrong("a dead letter was refused: %v", err)
	}
}

// relay is what relaying sends.
type relay int

func (w *world) relaysIn(z actor.ZombieMsg, n relay) {
	if w.relayed[n] || z.To != fmt.Sprint("relay ", int(n)) || !errors.Is(z.Reason, errNever) {
		w.wrong("dead letter %d is relayed as one to %s for %v, told before: %v", n, z.To, z.Reason, w.relayed[n])
	}
	w.relayed[n] = true
}
