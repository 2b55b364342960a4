package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// kind is what a step does.
type kind string

const (
	send    kind = "send"    // a message, without waiting
	ask     kind = "ask"     // a message, waiting with a deadline
	get     kind = "get"     // read an entity's acknowledged state
	list    kind = "list"    // read a pod's
	goOn    kind = "go on"   // let virtual time pass
	steps   kind = "steps"   // let so many things happen
	die     kind = "die"     // the process crashes, and is started again
	restart kind = "restart" // it ends in good order, and is started again
	faulty  kind = "faulty"  // commits that come have a fate
	leave   kind = "leave"   // the disk is away for a while
	crawl   kind = "crawl"   // syncs take long
	halt    kind = "halt"    // an entity's actor is stopped
	damage  kind = "damage"  // an entity's record becomes unreadable
	keep    kind = "keep"    // a persistent actor counts, or saves
	project kind = "project" // the projection is stopped, rebuilt or waited for
	write   kind = "write"   // a document, or the definition of its pod
)

// step is one step of a plan. What it does not need is zero.
type step struct {
	at   int // its place in the plan
	kind kind
	pod  string
	name string
	op   string // the message's name
	id   string
	to   string // another entity's name, or pod/name
	n    int
	d    time.Duration
	who  int  // the sender: messages of one come in order
	tag  bool // only at the last revision that was seen
}

func (s step) String() string {
	text := string(s.kind)
	for _, part := range []string{s.op, s.id, s.to} {
		if part != "" {
			text += " " + part
		}
	}
	if s.pod != "" {
		text += fmt.Sprintf(" [%s/%s]", s.pod, s.name)
	}
	if s.n != 0 {
		text += fmt.Sprintf(" %d", s.n)
	}
	if s.d != 0 {
		text += " " + s.d.String()
	}
	if s.tag {
		text += " if unchanged"
	}
	return text
}

// settings are what holds for a whole run.
type settings struct {
	names    int // entities in a pod
	idle     time.Duration
	active   int
	mailbox  int
	keep     uint64
	keepFor  time.Duration
	errRate  int
	slow     time.Duration
	healing  bool
	unruly   bool // Init fails at times
	eager    bool
	throws   bool // it ends by a crash, not in good order
	file     bool // the disk is a bbolt file
	logged   bool // a commit log stands in front of the disk
	two      bool // there is a second system in the process
	held     int  // the changes and the reminders that are in memory; 0: many
	jobs     bool // there are durable queues
	forms    bool // there are documents with a schema
	ledgers  bool // there are ledgers
	couriers bool // there are couriers
}

// plan is what a seed decides before the run begins.
type plan struct {
	settings
	steps []step
}

// senders is how many there are whose messages come in order.
const senders = 3

func newPlan(seed uint64) plan {
	rng := rand.New(rand.NewPCG(seed, 0x706c616e))
	p := plan{settings: settings{
		names:   1 + rng.IntN(4),
		idle:    choose(rng, -1, 10*time.Millisecond, 50*time.Millisecond, time.Second),
		active:  choose(rng, -1, 2, 5),
		mailbox: choose(rng, 0, 0, 0, 2, 6),
		keep:    choose[uint64](rng, 0, 0, 30),
		keepFor: choose(rng, 0, 0, 0, 50*time.Millisecond),
		errRate: choose(rng, 0, 0, 10, 60),
		slow:    choose(rng, 0, 2*time.Millisecond, 10*time.Millisecond),
		healing: rng.IntN(3) == 0,
		unruly:  rng.IntN(3) == 0,
		eager:   rng.IntN(4) == 0,
		throws:  rng.IntN(2) == 0,
		file:    rng.IntN(40) == 0,
		two:     rng.IntN(8) == 0,
	}}
	p.logged = rand.New(rand.NewPCG(seed, 0x6c6f67)).IntN(4) == 0
	p.held = choose(rand.New(rand.NewPCG(seed, 0x68656c64)), 0, 0, 2, 8)
	p.jobs = rand.New(rand.NewPCG(seed, 0x6a6f6273)).IntN(4) == 0
	p.ledgers = rand.New(rand.NewPCG(seed, 0x6c656467)).IntN(4) == 0
	p.couriers = rand.New(rand.NewPCG(seed, 0x636f7572)).IntN(5) == 0
	p.forms = rand.New(rand.NewPCG(seed, 0x666f726d)).IntN(4) == 0
	n := 20 + rng.IntN(70)
	other := rand.New(rand.NewPCG(seed, 0x6172656173))
	burst := 0
	var last step
	var scene []step
	for range n {
		s := p.step(rng)
		if len(scene) == 0 && rng.IntN(25) == 0 {
			scene = p.scene(rng)
		}
		if len(scene) > 0 {
			s, scene = scene[0], scene[1:]
		} else if burst > 0 { // many to the same, at once
			burst--
			s = p.message(rng)
			s.kind, s.pod, s.name = send, last.pod, last.name
		} else if s.kind == send && s.pod != accounts && s.pod != purses && s.pod != tills && rng.IntN(12) == 0 {
			burst = 3 + rng.IntN(12)
		}
		if s.kind == send && burst > 0 {
			last = s
		}
		p.add(s)
		for _, s := range p.between(other) {
			p.add(s)
		}
	}
	return p
}

// add gives a step its place and its id.
func (p *plan) add(s step) {
	s.at = len(p.steps)
	s.id = fmt.Sprintf("%c%d", 'a'+rune(s.who), s.at)
	p.steps = append(p.steps, s)
}

func choose[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

func (p *plan) step(rng *rand.Rand) step {
	switch r := rng.IntN(100); {
	case r < 50:
		return p.message(rng)
	case r < 58:
		return p.banking(rng)
	case r < 60:
		if rng.IntN(4) == 0 {
			return step{kind: project, n: rng.IntN(5)}
		}
		return step{kind: keep, n: rng.IntN(14)}
	case r < 63:
		return p.document(rng)
	case r < 66:
		return step{kind: get, pod: p.anyPod(rng), name: p.anyName(rng)}
	case r < 68:
		return step{kind: list, pod: p.anyPod(rng)}
	case r < 78:
		return step{kind: goOn, d: time.Duration(rng.IntN(30_000)) * time.Microsecond}
	case r < 85:
		return step{kind: steps, n: 1 + rng.IntN(60)}
	case r < 88:
		return step{kind: die, n: rng.IntN(40)}
	case r < 90:
		return step{kind: restart, d: choose(rng, time.Minute, 5*time.Millisecond)}
	case r < 94:
		return step{kind: faulty, n: 1 + rng.IntN(int(fates)-1)}
	case r < 95:
		return step{kind: leave, d: time.Duration(rng.IntN(300)) * time.Millisecond}
	case r < 96:
		return step{kind: crawl, d: time.Duration(rng.IntN(200)) * time.Millisecond}
	case r < 98:
		return step{kind: halt, pod: choose(rng, p.anyPod(rng), accounts, purses), name: p.anyName(rng), n: rng.IntN(3)}
	default:
		if rng.IntN(3) == 0 {
			return step{kind: damage, pod: keepers, name: "k"}
		}
		return step{kind: damage, pod: frail, name: p.anyName(rng)}
	}
}

// document is something about the pods of documents.
func (p *plan) document(rng *rand.Rand) step {
	return step{
		kind: write, pod: choose(rng, papers, papers, scratch), name: p.anyName(rng), n: rng.IntN(12),
		op: choose(rng, "merge", "merge", "set", "set", "remove", "declare", "drop"), to: fmt.Sprintf("a%d", rng.IntN(40)),
	}
}

// scene is a run of steps that meet in one entity: what seldom comes together by
// chance.
func (p *plan) scene(rng *rand.Rand) []step {
	pod, name := p.anyPod(rng), p.anyName(rng)
	put := func() step {
		return step{kind: send, pod: pod, name: name, op: choose(rng, "add", "note"), who: rng.IntN(senders)}
	}
	few := func() step { return step{kind: steps, n: 1 + rng.IntN(12)} }
	look := step{kind: get, pod: pod, name: name}
	switch rng.IntN(7) {
	case 0: // a successor while commits are under way
		return []step{{kind: crawl, d: 20 * time.Millisecond}, put(), few(), put(), few(), {kind: halt, pod: pod, name: name}, few(), put(), few(), put(), {kind: goOn, d: 30 * time.Millisecond}, look}
	case 1: // the same, in good order
		return []step{{kind: crawl, d: 20 * time.Millisecond}, put(), few(), put(), {kind: send, pod: pod, name: name, op: "passivate"}, few(), put(), {kind: goOn, d: 25 * time.Millisecond}, put(), look}
	case 2: // turns behind a commit that fails
		return []step{{kind: faulty, n: int(choose(rng, lostUnknown, writtenUnknown, refusedBefore, conflict, refusedUnit))}, put(), few(), put(), few(), put(), few(), put(), {kind: goOn, d: 20 * time.Millisecond}, look}
	case 3: // what an asynchronous entity has shown, and forgets
		name = p.anyName(rng)
		pod = beats
		look = step{kind: get, pod: pod, name: name}
		return []step{put(), {kind: goOn, d: 100 * time.Millisecond}, put(), {kind: goOn, d: 5 * time.Millisecond}, put(), look, few(), {kind: die}, put(), {kind: goOn, d: 5 * time.Millisecond}, put(), look, {kind: goOn, d: 5 * time.Millisecond}}
	case 4: // an account that ends before it has delivered
		pay := func() step {
			s := p.banking(rng)
			s.op, s.pod, s.name, s.n = "transfer", choose(rng, accounts, purses), name, 1+rng.IntN(5)
			return s
		}
		a, b := pay(), pay()
		b.pod, b.to = a.pod, a.to
		return []step{a, few(), b, few(), {kind: halt, pod: a.pod, name: name}, {kind: leave, d: 30 * time.Millisecond}, few(), b, {kind: goOn, d: 50 * time.Millisecond}}
	case 5: // more than a receiver takes at once
		s := p.banking(rng)
		s.op, s.pod, s.to, s.n = "transfer", choose(rng, accounts, purses), choose(rng, accounts, purses, tills)+"/"+p.anyName(rng), 1
		back := s
		back.pod, back.name, _ = strings.Cut(s.to, "/")
		return []step{s, s, few(), back, back, back, few(), s, s, few(), back, back, back, few(), back, {kind: goOn, d: 40 * time.Millisecond}}
	default: // damage, and whoever comes then
		pod = frail
		look = step{kind: get, pod: pod, name: name}
		return []step{put(), {kind: goOn, d: 30 * time.Millisecond}, {kind: send, pod: pod, name: name, op: "passivate"}, {kind: goOn, d: 30 * time.Millisecond}, {kind: damage, pod: pod, name: name}, put(), {kind: goOn, d: 30 * time.Millisecond}, look, put(), look}
	}
}

func (p *plan) anyPod(rng *rand.Rand) string { return choose(rng, things, things, books, frail, beats) }

func (p *plan) anyName(rng *rand.Rand) string { return fmt.Sprintf("e%d", rng.IntN(p.names)) }

// message is one to an entity with a log.
func (p *plan) message(rng *rand.Rand) step {
	s := step{
		kind: send, pod: p.anyPod(rng), name: p.anyName(rng), who: rng.IntN(senders), tag: rng.IntN(12) == 0,
		op: choose(rng, "add", "add", "add", "add", "note", "note", "touch", "reject", "fail", "crash", "look",
			"tell", "later", "remind", "remind", "pipe", "block", "pin", "retry", "delete", "delete", "passivate", "rebuild"),
	}
	if rng.IntN(6) == 0 {
		s.kind, s.d = ask, choose(rng, 3*time.Millisecond, 50*time.Millisecond, 10*time.Second)
	}
	if s.op == "tell" || s.op == "pipe" {
		s.to = p.anyName(rng)
	}
	if s.op == "delete" && rng.IntN(4) == 0 {
		s.op = "discard"
	}
	return s
}

// banking is a message to an account; some are repetitions.
func (p *plan) banking(rng *rand.Rand) step {
	pod := func() string { return choose(rng, accounts, purses, tills) }
	s := step{
		kind: send, pod: pod(), name: p.anyName(rng), who: rng.IntN(senders), n: 1 + rng.IntN(60),
		op: choose(rng, "transfer", "transfer", "transfer", "transfer", "repeat", "repeat", "overdraw", "passivate"),
	}
	s.to = pod() + "/" + p.anyName(rng)
	return s
}
