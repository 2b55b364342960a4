package actor

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/twinsrv/twinsrv/internal/mutant"
)

// askPath is where dead letters say that they were going when they were late
// answers: to an asker, who has no path.
const askPath = "/system/ask"

// ZombieMsg is a message that reached nobody.
type ZombieMsg struct {
	To      string // the path it was sent to; /system/ask for a late answer
	Message Message
	Reason  error // wraps ErrStopped, ErrNotFound or what else was the matter
	At      time.Time
}

// DeadLetters is where messages to nowhere go. Sends to the actor
// /system/deadletters end here too.
type DeadLetters struct {
	count   atomic.Uint64
	sys     *System
	hub     hub[ZombieMsg]
	telling atomic.Int32 // calls of subscribers' functions
}

// DeadLetters returns the system's dead letters.
func (s *System) DeadLetters() *DeadLetters { return &s.letters }

// Subscribe has f called for each dead letter from now on, in the call of
// whoever sent it, so also concurrently. f must not block; a panic in it is
// logged. A dead letter that f makes, by telling a stopped actor of one say, is
// counted and not published, and neither is a ZombieMsg that is sent on in vain.
func (d *DeadLetters) Subscribe(f func(ZombieMsg)) (cancel func()) {
	return d.hub.add(&subscription[ZombieMsg]{f: func(z ZombieMsg) {
		d.telling.Add(1)
		defer d.telling.Add(-1)
		tellOf(z, f)
	}})
}

// tellOf is what Publish finds on the stack of a subscriber who makes a letter.
//
//go:noinline
func tellOf(z ZombieMsg, f func(ZombieMsg)) { f(z) }

// SubscribeRef has r told each dead letter as a ZombieMsg from now on, until it
// stops. It is told nothing of what it has sent by its Context, and nothing while its
// mailbox is full. Whose handler answers each letter with a message to nobody in
// another way, such as Ref.Tell, or together with another subscriber, goes on for ever:
// nobody can tell that from other messages. The same comes of sending Subscribe to /system/deadletters, and
// twice is once: any cancel, or Unsubscribe, ends it.
func (d *DeadLetters) SubscribeRef(r *Ref) (cancel func()) { return d.hub.addRef(r) }

// Count returns how many dead letters there have been.
func (d *DeadLetters) Count() uint64 { return d.count.Load() }

// Publish adds a dead letter. At is set when it is zero.
func (d *DeadLetters) Publish(z ZombieMsg) {
	d.count.Add(1)
	if !d.hub.heard() {
		return
	}
	if _, again := z.Message.Payload.(ZombieMsg); again || d.telling.Load() > 0 && onStack(tellOf) {
		return
	}
	if z.At.IsZero() {
		z.At = d.sys.Now()
	}
	d.hub.publish(d.sys, z, z.Message.Sender)
}

// deadLetter publishes m and then ends its ask: who was told that it failed finds
// the letter there.
func (s *System) deadLetter(to string, m Message, reason error) {
	if p := m.Reply; p != nil && !mutant.On(mutant.AskNeverEnds) {
		p.pin()
		m.Reply = &s.spent // so that no subscriber answers it
		defer p.resolve(nil, fmt.Errorf("%s: %w", to, reason))
	}
	s.letters.Publish(ZombieMsg{To: to, Message: m, Reason: reason})
}

// absent deals with a message to an actor that takes none any more.
func (r *Ref) absent(m Message) { r.leftOver(m, true) }

// leftOver is absent for a message that the parent may be offered, or not: then
// it is a dead letter.
func (r *Ref) leftOver(m Message, offered bool) {
	switch p := m.Payload.(type) {
	case Terminated, *delegationEnd:
		return
	case PoisonPill:
		if m.Reply != nil {
			m.Reply.resolve(nil, fmt.Errorf("%s: %w", r.Path(), ErrStopped))
		}
		return
	case *timer:
		if p.owner == r || !p.take() { // an own one ends with the actor's timers, wherever it is
			return
		}
		m.Payload = p.msg
	case *piped:
		m.Payload = p.value
		if p.own && !mutant.On(mutant.PipedReachesNext) {
			r.dead(m)
			return
		}
	case *again:
		m.Payload = p.value
		r.dead(m)
		return
	}
	took := false
	defer func() { // also where OnAbsent leaves by runtime.Goexit
		if !took {
			r.dead(m)
		}
	}()
	took = offered && r.parent != nil && r.parent.offer(r.Name(), m)
}

// dead makes a dead letter of m.
func (r *Ref) dead(m Message) { r.sys.deadLetter(r.Path(), m, ErrStopped) }

// offer asks r's OnAbsent to take a message to the child of that name.
func (r *Ref) offer(name string, m Message) (took bool) {
	if r.props.OnAbsent == nil {
		return false
	}
	m.Reply.pin()
	err := protect(func() error { took = r.props.OnAbsent(name, m); return nil })
	if err != nil {
		r.sys.log.Error("OnAbsent panicked", "actor", r.Path(), "child", name, "err", err)
		return false
	}
	return took
}
