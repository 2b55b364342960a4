package actors

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// state is what an actor is in, as far as it shows.
type state int

const (
	fresh      state = iota // not started
	running                 //
	failed                  // something is to be decided or done
	restarting              // a new instance is to come
)

func (s state) String() string { return [...]string{"fresh", "running", "failed", "restarting"}[s] }

// life is one actor from its spawn to its end, and the model of it.
type life struct {
	w        *world
	ref      *actor.Ref
	path     string
	parent   *life // nil under /user
	number   int
	props    *props
	workers  bool // a router whose letters go to all workers
	isRouter bool // or another that has none of our methods

	state     state
	started   bool // the last instance had
	over      bool // its name is free
	body      *body
	instances int
	makes     int
	busy      bool
	wakes     time.Time // when it last went to sleep in a handler, the end of that
	held      bool
	posted    bool // PostStop was called
	cause     actor.StopCause
	reason    error
	asked     int  // how often it was told to stop
	quits     bool // it told itself

	// Failures: see failing.go.
	failing       error
	failedOn      any
	escalated     bool
	everEscalated bool // the parent may hear of it late
	mayRestart    bool
	mayResume     bool
	undecided     bool // it restarts, or stops as the budget is used up
	mustStop      bool
	mayStop       bool
	slowStop      bool // mustStop, but only after a delay
	replaced      bool // EnsureChild gave its name away
	notBefore     time.Time
	owed          int // restarts with all siblings that may still come
	restartOwe    int // an instance with a number above it must come
	past          past
	family        past // of its children, all for one
	fuzzy         bool // family is not exact
	restartAt     int  // when the restart began
	bornAt        time.Time
	restartBy     time.Time   // when the longest of the waits for a restart is over
	allStop       []time.Time // when its children stop for one that failed

	stack     []int
	behaviour int
	stash     []*parcel
	front     []*parcel
	last      map[string]int
	waits     int            // letters in the mailbox that were sent to it
	pills     map[string]int // the first of each sender
	leftovers []*parcel
	urged     int
	dies      time.Time // the dead-man's handle; zero: none
	watch     watching
	timers    []*timing
	promises  []*deferred
	heard     hearing

	delegates   map[*life]int // how often to each
	delegating  *life
	delegations int   // how many there were
	keptFrom    int   // what was sent to it after that, it handles itself while it delegates to nobody
	notes       notes // what its Store has
	called      string
	misfits     []int // what a router cannot be resized to
}

func (l *life) String() string {
	if l == nil {
		return "nobody"
	}
	return fmt.Sprintf("%s#%d", l.path, l.number)
}

func (l *life) name() string {
	if l.called != "" {
		return l.called
	}
	return l.path[strings.LastIndexByte(l.path, '/')+1:]
}

// key is who it is as a sender.
func (l *life) key() string { return l.String() }

// live makes the model of an actor that is about to be spawned.
func (w *world) live(parent *life, p *props) *life {
	return &life{
		w: w, parent: parent, props: p, number: len(w.lives), last: map[string]int{}, pills: map[string]int{},
		delegates: map[*life]int{}, held: p.held > 0, watch: newWatching(), notes: notes{},
	}
}

// born registers it.
func (l *life) born(r *actor.Ref) {
	w := l.w
	l.ref, l.path, l.bornAt = r, r.Path(), w.now()
	l.number = len(w.lives)
	w.lives = append(w.lives, l)
	w.byRef[r] = l
	w.at[l.path] = l
	w.note("%v is spawned", l)
}

// children are all that it ever had.
func (l *life) children() (all []*life) {
	for _, c := range l.w.lives {
		if c.parent == l {
			all = append(all, c)
		}
	}
	return all
}

// enter looks whether l may be called now.
func (l *life) enter(what string) {
	switch {
	case l.w.over:
		l.w.wrong("%s of %v after the system has stopped", what, l)
	case l.over:
		l.w.wrong("%s of %v after its end", what, l)
	case l.busy:
		l.w.wrong("%s of %v while it handles a message", what, l)
	}
	l.busy = true
}

func (l *life) leave() { l.busy = false }

// taken notes that the mailbox has p.
func (l *life) taken() {
	l.waits++
	if limit := l.props.capacity; limit > 0 && len(l.delegates) == 0 && l.waits > limit && !l.isRouter && !l.ref.Stopped() {
		l.w.wrong("%d letters wait in the mailbox of %v for %d", l.waits, l, limit)
	}
}

// untaken notes that p is in the mailbox no more.
func (l *life) untaken(p *parcel) {
	if p.fresh && !p.moved && p.timing == nil && p.piped == nil && !p.many && p.to == l && l.waits > 0 {
		l.waits--
	}
}

// refused looks whether l may refuse p.
func (l *life) refused(p *parcel, err error) {
	full, ok := errors.AsType[*actor.FullError](err)
	switch {
	case !ok || full.Ref != l.ref || full.Capacity != l.props.capacity || !strings.Contains(err.Error(), l.path+": "):
		l.w.wrong("%v was refused by %v with %v", p, l, err)
	case l.props.policy == actor.DropNewest || l.props.policy == actor.DropOldest || l.props.capacity == 0:
		l.w.wrong("%v was refused by %v, which refuses nothing", p, l)
	case l.ref.MailboxLen() < l.props.capacity && !l.isRouter:
		l.w.wrong("%v was refused by %v, which has room", p, l)
	}
}

// lost looks whether p, which was sent to l, may be a dead letter.
func (l *life) lost(p *parcel, z actor.ZombieMsg) {
	l.untaken(p)
	switch {
	case errors.Is(z.Reason, actor.ErrMailboxFull):
		drops := l.props.policy == actor.DropNewest || l.props.policy == actor.DropOldest
		answer := p.sender != nil && z.To == l.path
		if l.props.capacity == 0 || !drops && !answer {
			l.w.wrong("%v was dropped by %v, which drops nothing", p, l)
		}
		if l.props.policy == actor.DropNewest && p.seq != l.w.sent && p.piped == nil {
			l.w.wrong("%v was dropped by %v though it was not the newest", p, l)
		}
		if l.ref.MailboxLen() < l.props.capacity {
			l.w.wrong("%v was dropped by %v, which has room", p, l)
		}
	case errors.Is(z.Reason, actor.ErrStopped):
		if !l.ref.Stopped() {
			l.w.wrong("%v is a dead letter as if %v had stopped", p, l)
		}
		if p.fresh && p.piped == nil && p.timing == nil { // those two arrive when they are due
			l.leftovers = append(l.leftovers, p)
		}
	default:
		l.w.wrong("%v to %v is a dead letter: %v", p, l, z.Reason)
	}
	if z.To != l.path {
		l.w.wrong("%v to %v is a dead letter to %s", p, l, z.To)
	}
}

// resized says that l is the worker of a router, which a Resize may end.
func (l *life) resized() bool { return l.parent != nil && l.parent.isRouter }

// poisoned looks, when a PoisonPill has ended l, at what it left.
func (l *life) poisoned() {
	if len(l.pills) == 0 && !l.resized() {
		l.w.wrong("%v ended by a PoisonPill that nobody sent", l)
	}
	if len(l.pills) > 1 || l.props.custom {
		return // whose came first is not known
	}
	for _, p := range l.leftovers {
		if seq, ok := l.pills[p.from]; ok && p.seq < seq {
			l.w.wrong("%v is a dead letter though it was sent to %v before the PoisonPill that ended that", p, l)
		}
	}
}

// pilled notes a PoisonPill.
func (l *life) pilled(from string, err error) {
	if err != nil {
		l.w.wrong("a PoisonPill was refused by %v: %v", l, err)
	}
	l.w.note("pill from %s to %v", from, l)
	if _, ok := l.pills[from]; !ok {
		l.pills[from] = l.w.tick()
	}
}

func (p *parcel) leaveFront() {
	l := p.front
	if l == nil {
		return
	}
	p.front = nil
	drop := func(list []*parcel) []*parcel {
		for i, x := range list {
			if x == p {
				return append(list[:i:i], list[i+1:]...)
			}
		}
		return list
	}
	l.stash, l.front = drop(l.stash), drop(l.front)
}
