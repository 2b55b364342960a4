package actors

import (
	"fmt"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// letter is a message that says what its handler does.
type letter struct {
	ops    []op
	urgent bool // goes first in a Queue of one's own
	direct bool // is actor.NonDelegated
}

func (l *letter) String() string {
	if l == nil {
		return ""
	}
	var parts []string
	for _, o := range l.ops {
		parts = append(parts, o.String())
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// op is one thing that a handler does.
type op struct {
	kind   opKind
	slot   int
	n      int
	d      time.Duration
	letter *letter
	fails  *failure
	props  *props
}

func (o op) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %d %v %v", o.kind, slots[o.slot], o.n, o.d, o.letter))
}

type opKind string

const (
	opTell     opKind = "tell"
	opForward  opKind = "forward"
	opRespond  opKind = "respond"
	opRefuse   opKind = "fail ask"
	opDefer    opKind = "defer"
	opPipe     opKind = "pipe"
	opBecome   opKind = "become"
	opStack    opKind = "become stacked"
	opUnbecome opKind = "unbecome"
	opStash    opKind = "stash"
	opUnstash  opKind = "unstash"
	opDelegate opKind = "delegate"
	opUndo     opKind = "undelegate"
	opHandBack opKind = "end delegation"
	opWatch    opKind = "watch"
	opUnwatch  opKind = "unwatch"
	opOnce     opKind = "once"
	opEvery    opKind = "every"
	opCancel   opKind = "cancel"
	opDieIn    opKind = "die in"
	opHold     opKind = "hold"
	opQuit     opKind = "stop self"
	opRetire   opKind = "retire"
	opStop     opKind = "stop"
	opPill     opKind = "pill"
	opDisown   opKind = "stop child"
	opBear     opKind = "bear"
	opBlock    opKind = "block"
	opError    opKind = "error"
	opPanic    opKind = "panic"
	opStore    opKind = "store"
	opMisuse   opKind = "misuse"
	opSelect   opKind = "select"
)

// failure is an error that says what is to be done about it.
type failure struct {
	directive actor.Directive
	above     actor.Directive // when it was escalated
	delay     time.Duration
	number    int
}

// Error tells one failure from the next.
func (f *failure) Error() string {
	return fmt.Sprintf("failure %d: %v in %v, else %v", f.number, f.directive, f.delay, f.above)
}

// letter makes one; deep letters have handlers that send letters.
func (g *generator) letter(deep int) *letter {
	l := &letter{urgent: g.rng.IntN(3) == 0, direct: g.rng.IntN(6) == 0}
	for range g.rng.IntN(2 + g.wild) {
		l.ops = append(l.ops, g.op(deep))
	}
	switch r := g.rng.IntN(20); {
	case r < 5:
		l.ops = append(l.ops, op{kind: opRespond, letter: &letter{}})
	case r < 6:
		l.ops = append(l.ops, op{kind: opRefuse, fails: g.failure()})
	case r < 7:
		l.ops = append(l.ops, op{kind: opForward, slot: g.slot()})
	case r < 9:
		l.ops = append(l.ops, op{kind: opDefer, d: ms(g.rng, 30), n: g.rng.IntN(4)})
	case r < 12:
		l.ops = append(l.ops, op{kind: opStash})
	}
	if g.rng.IntN(10) < g.wild {
		l.ops = append(l.ops, op{kind: one(g.rng, opError, opError, opPanic), fails: g.failure()})
	}
	return l
}

func (g *generator) failure() *failure {
	f := &failure{
		directive: one(g.rng, actor.Restart, actor.Restart, actor.Restart, actor.Resume, actor.Stop, actor.Escalate),
		above:     one(g.rng, actor.Restart, actor.Resume, actor.Stop, actor.Escalate),
		number:    g.rng.IntN(1e6),
	}
	if g.rng.IntN(4) == 0 {
		f.delay = 1 + ms(g.rng, 30)
	}
	return f
}

func (g *generator) op(deep int) op {
	o := op{slot: g.slot(), d: time.Millisecond + ms(g.rng, 25), n: g.rng.IntN(100)}
	switch r := g.rng.IntN(100); {
	case r < 18 && deep > 0:
		o.kind, o.letter = opTell, g.letter(deep-1)
	case r < 27 && deep > 0:
		o.kind, o.letter, o.fails = opPipe, g.letter(deep-1), g.failure()
	case r < 37:
		o.kind = one(g.rng, opBecome, opStack, opStack, opUnbecome, opUnbecome)
	case r < 45:
		o.kind = opUnstash
	case r < 49:
		o.kind = one(g.rng, opDelegate, opDelegate, opUndo, opHandBack, opHandBack)
	case r < 61:
		o.kind = one(g.rng, opWatch, opWatch, opUnwatch)
	case r < 72:
		o.kind, o.letter = one(g.rng, opOnce, opOnce, opEvery, opCancel), &letter{}
		if o.kind == opOnce && deep > 0 {
			o.letter = g.letter(deep - 1)
		}
	case r < 76:
		o.kind = opDieIn
	case r < 80:
		o.kind = opHold
	case r < 82:
		o.kind = one(g.rng, opQuit, opRetire, opRetire)
	case r < 86:
		o.kind = one(g.rng, opStop, opPill, opPill, opDisown)
	case r < 89:
		o.kind, o.props = opBear, g.child()
	case r < 92:
		o.kind = opBlock
	case r < 94 && deep > 0:
		o.kind, o.letter = opSelect, g.letter(0)
	case r < 96:
		o.kind = opMisuse
	default:
		o.kind = opStore
	}
	return o
}

// child is the props of one that has nothing to do at its start.
func (g *generator) child() *props {
	p := g.props()
	p.begin = nil
	return p
}

// opening is what a PreStart does.
func (g *generator) opening() op {
	o := op{slot: g.slot(), d: time.Millisecond + ms(g.rng, 25), letter: &letter{}}
	switch g.rng.IntN(13) / 2 {
	case 0:
		o.kind = opWatch
	case 1:
		o.kind = opEvery
	case 2:
		o.kind = opOnce
	case 3:
		o.kind = opDieIn
		o.d *= 10
	case 4:
		o.kind, o.letter = opTell, g.letter(0)
	case 5:
		o.kind, o.props = opBear, g.child()
	case 6:
		o.kind = opQuit
	}
	return o
}
