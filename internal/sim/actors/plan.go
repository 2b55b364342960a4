package actors

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// kind is what a step does from outside of all actors.
type kind string

const (
	spawn       kind = "spawn"       // an actor, if the name is free
	ensure      kind = "ensure"      // an actor, unless it is there
	tell        kind = "tell"        // a letter
	burst       kind = "burst"       // n letters
	ask         kind = "ask"         // a letter, waiting with a deadline
	promise     kind = "promise"     // a letter, with a promise that calls back
	future      kind = "future"      // a letter, by the completion service
	pill        kind = "pill"        // a PoisonPill
	askPill     kind = "ask pill"    // a PoisonPill whose end is waited for
	stop        kind = "stop"        // an actor
	stopChild   kind = "stop child"  // an actor, by its name
	urge        kind = "urge"        // a message of TellSystem
	choose      kind = "select"      // a letter to a selection
	send        kind = "send"        // a letter to a path
	awaitEnd    kind = "await"       // an actor's end
	subscribe   kind = "subscribe"   // an actor to events or dead letters
	unsubscribe kind = "unsubscribe" // an actor from them
	cancel      kind = "cancel"      // a timer
	rate        kind = "router"      // spawn a router
	resize      kind = "resize"      // a router
	toAll       kind = "to all"      // a letter to all workers
	brood       kind = "brood"       // n children without names
	misname     kind = "misname"     // what cannot be spawned
	name        kind = "name"        // spawn a child with an odd name
	relayStep   kind = "relay"       // a dead letter to the actor for those
	mishear     kind = "mishear"     // subscribe to what is not there
	look        kind = "look"        // at what the runtime says of itself
	closing     kind = "close"       // the completion service
	goOn        kind = "go on"       // let virtual time pass
	turns       kind = "turns"       // let so many things happen
	halt        kind = "halt"        // stop the system, with a deadline
)

// step is one step of a plan. What it does not need is zero.
type step struct {
	at     int // its place in the plan
	kind   kind
	slot   int // whom it is about
	other  int
	who    int // the sender: messages of one come in order
	n      int
	d      time.Duration
	path   string
	letter *letter
	props  *props
	fails  *failure
}

func (s step) String() string {
	text := fmt.Sprintf("%s %s", s.kind, slots[s.slot])
	if s.path != "" {
		text += " " + s.path
	}
	if s.n != 0 {
		text += fmt.Sprintf(" %d", s.n)
	}
	if s.d != 0 {
		text += " " + s.d.String()
	}
	if s.props != nil {
		text += " " + s.props.String()
	}
	if s.letter != nil {
		text += " " + s.letter.String()
	}
	return text
}

// slots are the places where actors are, parents first. The last ones are for
// routers, whose workers have names of their own.
var slots = []string{"a", "b", "c", "a/x", "a/y", "a/z", "b/x", "b/y", "c/x", "a/x/k", "a/x/l", "b/x/k", "r", "b/r"}

const routers = 12 // from this slot on

// senders is how many there are outside.
const senders = 3

// props are what an actor is made with.
type props struct {
	policy    actor.Policy
	capacity  int
	custom    bool // a Queue in which urgent letters go first
	rule      *rule
	claims    bool // OnAbsent takes what comes for its children
	ignores   bool // IgnoreChildren
	held      time.Duration
	ownPoison bool
	verdict   *verdict // a FailedReceiver
	failStart int      // how many PreStarts fail
	failNew   int      // how many News fail
	badEnd    bool     // PostStop panics
	restless  bool     // PreRestart and Resumed panic
	leaves    bool     // PreRestart and Resumed stop it
	begin     []op     // in PreStart
	hears     int      // subscribes: 1 to events, 2 to dead letters
}

func (p *props) String() string {
	return fmt.Sprintf("{%v %d custom=%v rule=%v claims=%v ignores=%v held=%v own=%v verdict=%v starts=%d news=%d begin=%v}",
		p.policy, p.capacity, p.custom, p.rule, p.claims, p.ignores, p.held, p.ownPoison, p.verdict, p.failStart, p.failNew, p.begin)
}

// verdict is what a FailedReceiver says.
type verdict struct {
	directive actor.Directive
	fails     bool
}

func (v *verdict) String() string {
	if v == nil {
		return "none"
	}
	return fmt.Sprintf("%v/%v", v.directive, v.fails)
}

func one[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

func ms(rng *rand.Rand, n int) time.Duration {
	return time.Duration(rng.IntN(n)) * time.Millisecond
}

// newPlan is what a seed decides before the run begins.
func newPlan(seed uint64) []step {
	g := generator{rand.New(rand.NewPCG(seed, 0x706c616e)), 1 + int(seed%4)}
	var all []step
	if g.rng.IntN(4) == 0 {
		all = g.scene()
	}
	for slot := range routers {
		if g.rng.IntN(5) > 0 {
			all = append(all, step{kind: spawn, slot: slot, props: g.props()})
		}
	}
	for range 15 + g.rng.IntN(60) {
		all = append(all, g.step())
	}
	for i := range all {
		all[i].at = i
	}
	return all
}

// generator makes a plan. Some plans are wilder than others.
type generator struct {
	rng  *rand.Rand
	wild int
}

func (g *generator) props() *props {
	p := &props{rule: g.rule()}
	switch g.rng.IntN(9) {
	case 0:
		p.policy, p.capacity = actor.Fail, 1+g.rng.IntN(4)
	case 1:
		p.policy, p.capacity = actor.Block, one(g.rng, 1, 2, 3, 12)
	case 2:
		p.policy, p.capacity = actor.DropNewest, 1+g.rng.IntN(4)
	case 3:
		p.policy, p.capacity = actor.DropOldest, one(g.rng, 1, 2, 3, 4, 12)
	case 4:
		p.custom, p.capacity = true, g.rng.IntN(5)
	}
	p.claims = g.rng.IntN(5) == 0
	p.ignores = g.rng.IntN(6) == 0
	p.ownPoison = g.rng.IntN(10) == 0
	p.badEnd = g.rng.IntN(12) == 0
	p.restless = g.rng.IntN(12) == 0
	p.leaves = g.rng.IntN(16) == 0
	if g.rng.IntN(8) == 0 {
		p.held = 1 + ms(g.rng, 20)
	}
	if g.rng.IntN(4) == 0 {
		p.verdict = &verdict{one(g.rng, actor.Restart, actor.Resume, actor.Stop, actor.Escalate), g.rng.IntN(6) == 0}
	}
	if g.rng.IntN(8) == 0 {
		p.failStart = 1 + g.rng.IntN(3)
	}
	if g.rng.IntN(12) == 0 {
		p.failNew = 1 + g.rng.IntN(2)
	}
	if g.rng.IntN(10) == 0 {
		p.hears = 1 + g.rng.IntN(2)
	}
	for range g.rng.IntN(3) {
		p.begin = append(p.begin, g.opening())
	}
	return p
}

func (g *generator) slot() int { return g.rng.IntN(len(slots)) }

// step is any one.
func (g *generator) step() step {
	s := step{slot: g.slot(), other: g.slot(), who: g.rng.IntN(senders)}
	switch r := g.rng.IntN(100); {
	case r < 38:
		s.kind, s.letter = tell, g.letter(2)
	case r < 45:
		s.kind, s.letter, s.d = ask, g.letter(2), one(g.rng, 0, time.Millisecond, 20*time.Millisecond, 3*time.Second)
		s.n = g.rng.IntN(askWays)
	case r < 48:
		s.kind, s.letter, s.d = one(g.rng, promise, future), g.letter(1), ms(g.rng, 40)
	case r < 60:
		s.kind, s.d = goOn, time.Duration(g.rng.IntN(40_000))*time.Microsecond
	case r < 70:
		s.kind, s.n = turns, 1+g.rng.IntN(40)
	default:
		g.rare(&s)
	}
	return s
}

// rare makes s something that happens less often.
func (g *generator) rare(s *step) {
	switch r := g.rng.IntN(100); {
	case r < 16:
		s.kind, s.props, s.n = one(g.rng, spawn, spawn, ensure), g.props(), g.rng.IntN(6)
	case r < 24:
		s.kind = one(g.rng, pill, pill, askPill)
	case r < 32:
		s.kind = one(g.rng, stop, stop, stopChild)
	case r < 38:
		s.kind, s.n = urge, 1+g.rng.IntN(3)
		if g.rng.IntN(4) == 0 {
			s.fails = g.failure()
		}
	case r < 46:
		s.kind, s.letter = choose, g.letter(1)
		s.path = one(g.rng, "/user/*", "*", "../*", "../b", "x", "./x/k", "*/x", "/user/a/nobody", "../../c", "/system/deadletters", "*/..", "*/../x", "/*/a")
	case r < 50:
		s.kind, s.letter, s.path = send, g.letter(1), one(g.rng, "/user/a", "/user/a/x", "/user/b/nobody", "no path", "/user/nobody/x", "/")
	case r < 55:
		s.kind, s.d = awaitEnd, one(g.rng, time.Millisecond, time.Hour)
	case r < 60:
		s.kind, s.n = one(g.rng, subscribe, unsubscribe), 1+g.rng.IntN(2)
	case r < 64:
		s.kind, s.n = cancel, g.rng.IntN(100)
	case r < 71:
		s.kind, s.n, s.slot, s.props = rate, g.rng.IntN(5), routers+g.rng.IntN(len(slots)-routers), g.props()
	case r < 76:
		s.kind, s.n, s.slot, s.letter = one(g.rng, resize, toAll), 1+g.rng.IntN(4), routers+g.rng.IntN(len(slots)-routers), g.letter(0)
	case r < 80:
		s.kind, s.n, s.props = brood, one(g.rng, 1, 3, 20), g.props()
	case r < 83:
		s.kind, s.n = misname, g.rng.IntN(misnomers)
	case r < 84:
		s.kind, s.n, s.props = one(g.rng, name, name, relayStep, mishear), g.rng.IntN(40), g.child()
	case r < 93:
		s.kind, s.letter, s.n = burst, g.letter(0), one(g.rng, 3, 8, 8, 70, 70, 300)
		if g.rng.IntN(60) == 0 {
			s.n = 5000
		}
		if s.n > 8 { // all the same, so they do little
			s.letter = &letter{urgent: s.letter.urgent}
			if s.n == 70 && g.rng.IntN(2) == 0 {
				s.letter.ops = []op{{kind: one(g.rng, opStash, opError, opStore), fails: g.failure()}}
			}
		}
	case r < 96:
		s.kind = look
	case r < 97:
		s.kind = closing
	default:
		s.kind, s.d = halt, one(g.rng, 0, time.Millisecond, 20*time.Millisecond, time.Second)
		if g.rng.IntN(3) > 0 {
			s.kind = look // most systems are not stopped so early
		}
	}
}
