package actors

import (
	"errors"
	"fmt"
	"go/token"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/router"
)

// parcel is one message on its way. It ends once: handled, refused, a dead
// letter, or claimed by an OnAbsent.
type parcel struct {
	w      *world
	id     int
	letter *letter
	from   string // the sender, for whom there is an order
	to     *life  // whom it was sent to; nil when that is not one actor
	seq    int    // of all that is sent
	sender *life
	ask    *asking
	timing *timing
	piped  *life // by whom
	own    bool  // sent by the actor to itself, as a timer or a result
	many   bool  // to several; may end once at each
	fresh  bool  // not handled yet since it was sent
	moved  bool  // forwarded, so who has it is not only to
	front  *life // whose stash, or front of the mailbox, it is in
	opened int   // how often it was handled
	ends   int
	last   string
	endAt  map[*life]bool
}

// direct is a parcel that is actor.NonDelegated.
type direct struct{ *parcel }

// NonDelegated marks it.
func (direct) NonDelegated() {}

// HashKey has the letters of one sender go to one worker.
func (p *parcel) HashKey() string { return p.from }

func (p *parcel) String() string { return fmt.Sprintf("letter %d of %s", p.id, p.from) }

func parcelOf(payload any) *parcel {
	switch m := payload.(type) {
	case *parcel:
		return m
	case direct:
		return m.parcel
	case router.ToAll:
		return parcelOf(m.Message)
	case actor.PipeFailed:
		if p, ok := errors.AsType[*piping](m); ok {
			return p.parcel
		}
	}
	return nil
}

// piping is the error of a piped function, which carries its parcel.
type piping struct{ *parcel }

// Error names the parcel.
func (p *piping) Error() string { return "piped: " + p.parcel.String() }

// parcel makes one that is about to be sent.
func (w *world) parcel(l *letter, from string, sender, to *life) *parcel {
	p := &parcel{w: w, id: len(w.parcels), letter: l, from: from, sender: sender, to: to, seq: w.tick(), fresh: true}
	p.many = to != nil && to.workers
	w.parcels = append(w.parcels, p)
	return p
}

func (p *parcel) payload() any {
	if p.letter.direct {
		return direct{p}
	}
	return p
}

// end notes what became of it.
func (p *parcel) end(how string, at *life) {
	p.w.note("%v: %s at %v", p, how, at)
	if p.timing != nil && p.timing.every {
		return
	}
	p.ends++
	if p.many {
		if at != nil && p.endAt[at] && !p.w.delegated {
			p.w.wrong("%v ended twice at %v", p, at)
		}
		if p.endAt == nil {
			p.endAt = map[*life]bool{}
		}
		p.endAt[at] = true
		return
	}
	if p.ends > 1 {
		p.w.wrong("%v to %v was %s and then %s", p, p.to, p.last, how)
	}
	p.last = how
	p.leaveFront()
}

// posted notes what a send returned.
func (p *parcel) posted(err error) {
	l := p.to
	switch {
	case err == nil:
		if l != nil && p.ends == 0 && p.fresh && !p.moved && !p.many {
			l.taken()
		}
		return
	case p.many:
		p.w.wrong("%v to several was refused: %v", p, err)
	case !errors.Is(err, actor.ErrMailboxFull):
		p.w.wrong("%v to %v: refused with %v", p, l, err)
	default:
		l.refused(p, err)
	}
	if p.ask != nil {
		p.ask.refused = true
	}
	p.end("refused", l)
}

func (w *world) telling(l *life, from string, text *letter) {
	if l.props.policy == actor.Block {
		w.tellBlocking(l, text)
		return
	}
	p := w.parcel(text, from, nil, l)
	w.note("%v to %v", p, l)
	p.posted(l.ref.Tell(p.payload()))
}

// tellBlocking has a job of its own send, as it may have to wait.
func (w *world) tellBlocking(l *life, text *letter) {
	p := w.parcel(text, "", nil, l)
	p.from = fmt.Sprintf("job%d", p.id)
	w.goes(func() {
		if p.id%4 == 0 {
			w.tellPatiently(l, p)
			return
		}
		ctx, cancel := w.sys.WithTimeout(w.background(), 200*time.Millisecond)
		defer cancel()
		p.seq = w.tick()
		w.note("%v to %v", p, l)
		p.posted(l.ref.TellContext(ctx, p.payload()))
	})
}

// tellPatiently waits for room for as long as it takes: until there is some or
// the actor stops.
func (w *world) tellPatiently(l *life, p *parcel) {
	p.seq = w.tick()
	w.note("%v to %v, with patience", p, l)
	if p.id%8 == 0 {
		err := l.ref.Tell(p.payload())
		if err != nil {
			w.wrong("%v was refused by %v: %v", p, l, err)
		}
		p.posted(err)
		return
	}
	switch err := l.ref.TryPost(actor.Message{Payload: p.payload()}); {
	case err == nil:
		p.posted(nil)
	case !errors.Is(err, actor.ErrStopped) || !l.ref.Stopped():
		w.wrong("%v was refused by %v: %v", p, l, err)
	default:
		p.end("not posted", l)
	}
}

// order looks whether p comes at l after what its sender sent before.
func (w *world) order(p *parcel, l *life, what string) {
	if l.bySeveralWays(p.to) {
		return
	}
	if p.many || p.timing != nil || p.piped != nil && (l.props.custom || len(l.delegates) > 0) {
		return
	}
	key := fmt.Sprintf("%s>%v %s", p.from, p.to, what)
	if p.letter.direct {
		key += " direct"
	}
	if l.props.custom || (p.to != nil && p.to.props.custom) {
		key += fmt.Sprint(p.letter.urgent)
	}
	if last, ok := l.last[key]; ok && last > p.seq {
		w.wrong("%v reached %v after a later one (%s)", p, l, what)
	}
	l.last[key] = p.seq
}

// onDead is told each dead letter.
func (w *world) onDead(z actor.ZombieMsg) {
	w.letters++
	w.zombies = append(w.zombies, z)
	if z.Reason == nil || z.At != w.now() {
		w.wrong("a dead letter to %s has reason %v and time %v", z.To, z.Reason, z.At)
	}
	if r, ok := z.Message.Payload.(*reply); ok {
		w.note("answer %d is a dead letter", r.id)
		r.ends++
		return
	}
	switch m := z.Message.Payload.(type) {
	case *haunting:
		w.wrong("what %v could not send is a dead letter to %s", m.by, z.To)
	case relay:
		w.relaysIn(z, m)
	}
	p := parcelOf(z.Message.Payload)
	if p == nil {
		what := fmt.Sprintf("%T", z.Message.Payload)
		w.note("dead letter to %s: %s", z.To, what)
		if own, is := strings.CutPrefix(what, "*actor."); is && !token.IsExported(own) {
			w.wrong("the runtime's own %s to %s is a dead letter", what, z.To)
		}
		return
	}
	if t := p.timing; t != nil && p.fresh && !p.moved && z.To == t.to.path && !t.to.isRouter && len(t.to.delegates) == 0 && !t.valid() {
		w.wrong("%v of a timer that is over is a dead letter", p)
	}
	l := p.to
	if l != nil && !p.moved && !p.many && len(l.delegates) == 0 && !l.isRouter {
		l.lost(p, z)
	}
	if p.ask != nil {
		p.ask.dead = true
		if !p.many { // else others may have it, and answer or not
			p.ask.done(w.now())
		}
	}
	if p.many {
		l = w.at[z.To]
	}
	p.end("a dead letter", l)
}
