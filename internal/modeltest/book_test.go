package modeltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
)

// fate is what is known of an attempt.
type fate uint8

const (
	open     fate = iota // no answer yet
	accepted             // acknowledged, or seen in a state
	refused              // told that it changed nothing
	unknown              // told that the outcome is unknown, or cut off by a crash
	lost                 // unknown, and then seen not to have happened
	limbo                // unknown, and the life it may have been in has ended
)

func (f fate) String() string {
	return [...]string{"open", "accepted", "refused", "unknown", "lost", "limbo"}[f]
}

// may says that the attempt can have had its effect, or can still have it.
func (f fate) may() bool { return f != refused && f != lost }

// effect is what a command does to the state if it is accepted. A message with
// an id may be sent several times, and has its effect once in a life.
type effect struct {
	id       string
	entries  []string // of the log
	to       persist.Key
	parcels  []string // for to
	msg      any
	gone     bool // it may have happened in a volatile entity that has ended
	attempts []*attempt
}

// may says that some attempt can have had the effect.
func (e *effect) may() bool {
	return slices.ContainsFunc(e.attempts, func(a *attempt) bool { return a.fate.may() })
}

// attempt is one message that was sent.
type attempt struct {
	n         int // counts all messages of a run
	book      *book
	what      string
	effect    *effect // nil: it changes no log
	messageID string
	match     entity.ETag // of a condition; zero: none
	rows      bool        // an acknowledgement says that it is durable, also of an asynchronous entity
	promise   *actor.Promise
	fate      fate
	err       error
	ack       entity.Ack
	sentIn    uint64 // the life that was known to be there; 0: none
}

func (a *attempt) String() string {
	s := fmt.Sprintf("#%d %s %s", a.n, a.book.key, a.what)
	if a.effect != nil {
		s += " " + a.effect.id
	}
	return s
}

// book is what is known of one entity.
type book struct {
	m        *model
	key      persist.Key
	attempts []*attempt
	effects  map[string]*effect // by the entries of the log
	lives    map[uint64]*life
	latest   *life // nil: none was seen
}

// life is what is known of one life of an entity.
type life struct {
	n       uint64
	ended   bool
	floor   uint64 // revisions below it are not shown any more
	durable uint64 // of an asynchronous entity: a crash leaves at least this revision
	acked   map[uint64]*effect
	logs    map[uint64][]string // that were seen, by revision
	top     uint64              // the highest of these
	cut     bool                // a crash may have cut the top off, and nothing was seen since
}

func (b *book) exact() bool   { return b.key.Pod != asyncPod }
func (b *book) ordered() bool { return b.key.Pod != docPod }

// mayEnd says that the latest life may have been ended by a deletion.
func (b *book) mayEnd() bool {
	return slices.ContainsFunc(b.attempts, func(a *attempt) bool {
		return a.what == "delete" && (a.fate == open || a.fate == unknown)
	})
}

// everDeleted says that some life of it may have ended.
func (b *book) everDeleted() bool {
	return slices.ContainsFunc(b.attempts, func(a *attempt) bool { return a.what == "delete" && a.fate.may() })
}

// alive returns the life that is certainly there; nil if none is.
func (b *book) alive() *life {
	if b.latest == nil || b.latest.ended || b.mayEnd() {
		return nil
	}
	return b.latest
}

func (b *book) failf(format string, args ...any) {
	b.m.failf("%s: %s\n%s", b.key, fmt.Sprintf(format, args...), b.history())
}

// history tells what was sent to the entity, for a failure's message.
func (b *book) history() string {
	var s strings.Builder
	for _, a := range b.attempts {
		fmt.Fprintf(&s, "  %s: %s", a, a.fate)
		if a.err != nil {
			fmt.Fprintf(&s, " (%v)", a.err)
		} else if a.fate == accepted {
			fmt.Fprintf(&s, " %d-%d", a.ack.Life, a.ack.Revision)
		}
		s.WriteByte('\n')
	}
	for _, n := range slices.Sorted(maps.Keys(b.lives)) {
		l := b.lives[n]
		fmt.Fprintf(&s, "  life %d: floor %d, durable %d, top %d %v, ended %v\n", n, l.floor, l.durable, l.top, l.logs[l.top], l.ended)
	}
	return s.String()
}

// life returns the book's life of a number, which may be a new one.
func (b *book) life(n uint64) *life {
	if l := b.lives[n]; l != nil {
		return l
	}
	if n == 0 {
		b.failf("a life has no number")
	}
	if other := b.m.lives[n]; other != nil && other != b && (b.key.Pod == volatilePod) == (other.key.Pod == volatilePod) {
		b.failf("life %d is that of %s", n, other.key)
	}
	if old := b.latest; old != nil && n > old.n {
		if !old.ended && !b.mayEnd() {
			b.failf("life %d begins, and nothing can have ended life %d", n, old.n)
		}
		old.ended = true
	}
	l := &life{n: n, acked: map[uint64]*effect{}, logs: map[uint64][]string{}}
	b.lives[n], b.m.lives[n] = l, b
	if b.latest != nil && n < b.latest.n {
		l.ended = true // an acknowledgement that is looked at late
		return l
	}
	b.latest = l
	return l
}

// absent takes the answer that there is no entity now.
func (b *book) absent() {
	if b.latest == nil || b.latest.ended {
		return
	}
	if !b.mayEnd() {
		b.failf("it is not there, and nothing can have ended life %d", b.latest.n)
	}
	b.latest.ended = true
}

// now takes what a read shows at this moment.
func (b *book) now(n, revision uint64, log []string) {
	l := b.life(n)
	if l != b.latest || l.ended {
		b.failf("life %d is shown, which has ended", n)
	}
	if revision < l.floor {
		b.failf("revision %d is shown, after %d", revision, l.floor)
	}
	l.floor = revision
	b.was(n, revision, log)
	b.complete(l, revision, log)
}

// was takes a state that some answer, now or of an earlier time, shows.
func (b *book) was(n, revision uint64, log []string) {
	l := b.life(n)
	if b.exact() && uint64(len(log)) != revision {
		b.failf("revision %d has the log %v: each entry is a revision", revision, log)
	}
	if known, is := l.logs[revision]; is {
		if !b.same(known, log) {
			b.failf("revision %d-%d is %v, and was %v", n, revision, log, known)
		}
	} else {
		b.sound(log)
	}
	switch top := l.logs[l.top]; {
	case l.cut:
		if !b.startsWith(top, log) && !b.startsWith(log, top) {
			b.failf("after a crash it is %v; before it was %v", log, top)
		}
		b.forgetAfter(l, revision, log)
	case revision >= l.top && !b.startsWith(log, top), revision < l.top && !b.startsWith(top, log):
		b.failf("revision %d is %v and revision %d is %v", revision, log, l.top, top)
	}
	l.logs[revision] = log
	l.top = max(l.top, revision)
}

// forgetAfter takes what a crash has left of an asynchronous entity.
func (b *book) forgetAfter(l *life, revision uint64, log []string) {
	if revision < l.durable {
		b.failf("after a crash it has revision %d; %d was durable", revision, l.durable)
	}
	l.cut, l.top = false, revision
	for r, e := range l.acked {
		if r <= revision {
			continue
		}
		for _, a := range e.attempts {
			if a.fate == accepted && a.ack.Life == l.n && !contains(log, e.entries) {
				a.fate = lost
			}
		}
	}
}

// complete requires of a state at a revision that everything acknowledged up to
// it is there.
func (b *book) complete(l *life, revision uint64, log []string) {
	for r, e := range l.acked {
		switch {
		case r > revision:
		case b.exact() && b.ordered():
			if at := int(r) - len(e.entries); at < 0 || !slices.Equal(log[at:r], e.entries) {
				b.failf("revision %d was acknowledged for %s, and is %v at revision %d", r, e.id, log, revision)
			}
		case !contains(log, e.entries) && slices.ContainsFunc(e.attempts, func(a *attempt) bool { return a.fate == accepted && a.ack.Life == l.n }):
			b.failf("%s was acknowledged with revision %d and is not in %v at revision %d", e.id, r, log, revision)
		}
	}
}

// sound requires that a log holds only what can have happened, once, and in the
// order in which it was sent.
func (b *book) sound(log []string) {
	once := map[string]bool{}
	last := 0
	for _, entry := range log {
		if once[entry] {
			b.failf("%s is there twice: %v", entry, log)
		}
		once[entry] = true
		if e := b.effects[entry]; e != nil {
			last = b.behind(e, last, log)
			continue
		}
		e := b.m.parcels[entry]
		if e == nil || e.to != b.key {
			b.failf("%s was never sent to it: %v", entry, log)
		}
		if !e.may() && !e.gone {
			b.failf("%s has arrived, and the command that would send it did not happen: %v\n%s", entry, log, e.attempts[0].book.history())
		}
	}
}

// behind returns the first attempt at an effect that can have had it, behind one
// that was sent before.
func (b *book) behind(e *effect, last int, log []string) int {
	possible := false
	for _, a := range e.attempts {
		if !a.fate.may() {
			continue
		}
		possible = true
		if !b.ordered() || a.n >= last { // a pair has two entries of one attempt
			return max(a.n, last)
		}
	}
	if possible {
		b.failf("%s is out of order: %v", e.id, log)
	}
	b.failf("%s did not happen, and is there: %v", e.id, log)
	return 0
}

// acknowledge takes the acknowledgement of an attempt at an effect.
func (b *book) acknowledge(a *attempt) {
	l := b.life(a.ack.Life)
	r := a.ack.Revision
	if a.ack.Created && b.exact() && int(r) != len(a.effect.entries) {
		b.failf("%s has created it with revision %d", a, r)
	}
	for _, before := range a.effect.attempts {
		if before != a && before.ack.Revision > 0 && before.ack.Life == a.ack.Life && (before.ack.Revision != r || before.ack.Created != a.ack.Created) {
			b.failf("%s was answered with %d-%d, and before with %d-%d", a, l.n, r, l.n, before.ack.Revision)
		}
	}
	if e := l.acked[r]; e != nil && e != a.effect {
		b.failf("%s was answered with %d-%d, as %s was", a, l.n, r, e.id)
	}
	l.acked[r] = a.effect
	if l == b.latest && !l.ended {
		l.floor = max(l.floor, r)
	}
	if b.exact() || a.rows || a.ack.Created {
		l.durable = max(l.durable, r)
	}
	if log, is := l.logs[r]; is && !contains(log, a.effect.entries) {
		b.failf("%s was answered with %d-%d, which is %v", a, l.n, r, log)
	}
	if top := l.logs[l.top]; l.top >= r && !contains(top, a.effect.entries) && !l.cut {
		b.failf("%s was answered with %d-%d, and revision %d is %v", a, l.n, r, l.top, top)
	}
}

// restart takes note that the process of the entity has ended, in order or not.
// All that had no answer has an unknown outcome.
func (b *book) restart(inOrder bool) {
	for _, a := range b.attempts {
		if a.fate == open {
			a.fate = unknown
		}
	}
	l := b.latest
	switch {
	case b.key.Pod == volatilePod:
		if l != nil {
			l.ended = true
		}
		for _, a := range b.attempts {
			if a.fate.may() {
				if a.fate = lost; a.effect != nil {
					a.effect.gone = true
				}
			}
		}
	case l != nil && inOrder:
		l.durable = max(l.durable, l.floor)
	case l != nil && !b.exact():
		l.floor, l.cut = l.durable, true
	}
}

// settle decides what was unknown of the attempts through number n: nothing of
// them is in flight, and what the latest life shows is all that happened.
func (b *book) settle(n int) {
	var log []string
	if b.latest != nil && !b.latest.ended {
		log = b.latest.logs[b.latest.top]
	}
	deleted := b.everDeleted()
	for _, a := range b.attempts {
		if a.n > n || a.fate != unknown && a.fate != open {
			continue
		}
		switch {
		case a.effect != nil && contains(log, a.effect.entries):
			a.fate = accepted
			a.ack.Life = b.latest.n
		case a.what == "delete" && b.lives[a.sentIn] != nil && !b.lives[a.sentIn].ended:
			a.fate = lost
		case deleted:
			a.fate = limbo
		default:
			a.fate = lost
		}
	}
}

// same compares two logs, those of documents as sets.
func (b *book) same(x, y []string) bool { return len(x) == len(y) && b.startsWith(x, y) }

// startsWith says that a log is a later one than part, or the same.
func (b *book) startsWith(log, part []string) bool {
	if !b.ordered() {
		return contains(log, part)
	}
	return len(part) <= len(log) && slices.Equal(log[:len(part)], part)
}

func contains(log, part []string) bool {
	return !slices.ContainsFunc(part, func(s string) bool { return !slices.Contains(log, s) })
}
