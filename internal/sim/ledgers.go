package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// post is a step about a persistent actor that may be quarantined.
const post kind = "post"

// ledgers is the pod of their records.
const ledgers = "ledgers"

// ledgerPage is what a ledger saves. No two have the same serial.
type ledgerPage struct {
	Serial int `json:"serial"`
	Count  int `json:"count"`
}

// posting is a message to a ledger.
type posting struct{ Op string }

var errTrifle = errors.New("a trifle")

// shelf is what is known of a ledger's snapshots, in all processes.
type shelf struct {
	name    string
	pages   []ledgerPage    // that it was told to save; the serial is one more than the place
	saved   int             // the last serial that was durable
	dropped int             // through which serial they may have been deleted
	gone    int             // through which they are
	faults  int             // so many recoveries fail
	whole   snapshot.Record // as it was before it was damaged
	ref     *actor.Ref
	at      *process
	actor   *ledger // the last that was recovered
}

// ledger is a persistent actor that counts. One instance is recovered once.
type ledger struct {
	w         *process
	shelf     *shelf
	count     int
	recovered bool
	pace      []int // by what it counts; one for each behaviour
	forgets   []int // through which serial deletions under way go
}

func planPosting(p *plan, rng *rand.Rand) step {
	if !p.ledgers {
		return step{}
	}
	name := choose(rng, "l0", "l1")
	do := func(ops ...string) step {
		return step{kind: post, op: choose(rng, ops...), pod: ledgers, name: name, n: rng.IntN(3)}
	}
	some := func() step {
		return do("count", "count", "save", "save", "save", "forget", "fail", "trifle", "double", "stack", "single", "stop", "poison", "retry", "discard", "fault")
	}
	if rng.IntN(3) == 0 { // a quarantine, and what ends it
		p.add(do("save"))
		p.add(step{kind: goOn, d: 20 * time.Millisecond})
		p.add(do("damage", "fault"))
		p.add(do("fail", "trifle", "poison"))
		p.add(do("count"))
		p.add(step{kind: goOn, d: time.Duration(rng.IntN(200)) * time.Millisecond})
		p.add(do("count"))
		return do("retry", "discard", "count", "mend")
	}
	if rng.IntN(3) == 0 { // to others and back
		for range 2 + rng.IntN(3) {
			p.add(do("double", "stack", "stack"))
		}
		p.add(do("single"))
		p.add(do("count"))
		p.add(do("single", "double"))
		return do("count")
	}
	for range rng.IntN(5) {
		p.add(some())
	}
	return some()
}

// shelved is what is known of a ledger.
func (w *process) shelved(name string) *shelf {
	if w.shelves == nil {
		w.shelves = map[string]*shelf{}
	}
	s := w.shelves[name]
	if s == nil {
		s = &shelf{name: name}
		w.shelves[name] = s
	}
	if s.at != w || s.ref.Stopped() {
		w.openLedger(s)
	}
	return s
}

// openLedger starts a ledger, under a parent that has it go on after trifles.
func (w *process) openLedger(s *shelf) {
	cfg := persist.PersistentConfig{Codec: snapshot.JSON()}
	if s.name == "l0" {
		cfg.Committer = w.pods.Committer()
	}
	props := cfg.Props(func() persist.PersistentActor {
		s.actor = nil
		return &ledger{w: w, shelf: s, pace: []int{1}}
	})
	parent, err := w.sys.Spawn("", actor.Props{
		New: func() actor.Actor { return actor.ActorFunc(func(*actor.Context, any) error { return nil }) },
		Supervisor: &actor.Strategy{MaxRestarts: 20, Decide: func(err error) actor.Directive {
			if errors.Is(err, errTrifle) {
				return actor.Resume
			}
			return actor.Restart
		}},
	})
	w.must(err)
	s.at, s.actor = w, nil
	s.ref, err = parent.Spawn("ledger", props)
	w.must(err)
}

func (l *ledger) PersistenceID() persist.Key { return persist.Key{Pod: ledgers, Name: l.shelf.name} }

// Committer implements persist.ServiceOwner.
func (l *ledger) Committer() *persist.Committer {
	if l.shelf.name == "l0" {
		return nil // as the Props say
	}
	return l.w.pods.Committer()
}

// Recover looks whether what is recovered was saved, and not deleted since.
func (l *ledger) Recover(ctx *persist.Context, snap persist.Snapshot) error {
	s, w := l.shelf, l.w
	if w.dead {
		return nil
	}
	if s.faults > 0 {
		s.faults--
		if s.faults%2 == 0 {
			return errTrifle
		}
		return errOnPurpose
	}
	var p ledgerPage
	if err := snap.Decode(&p); err != nil {
		return err
	}
	w.note("ledger %s is recovered: %t %+v", s.name, snap.Found, p)
	switch {
	case l.recovered:
		w.wrong("G5: the ledger %s is recovered twice", s.name)
	case w.corrupt(s):
		w.wrong("G5: the record of the ledger %s cannot be read, and it is recovered with %+v", s.name, p)
	case !snap.Found && s.saved > s.dropped:
		w.wrong("G5: the ledger %s had saved page %d, and is recovered without", s.name, s.saved)
	case snap.Found && (p.Serial < s.saved || p.Serial > len(s.pages) || s.pages[p.Serial-1] != p):
		w.wrong("G5: the ledger %s had saved page %d, and is recovered with %+v", s.name, s.saved, p)
	case snap.Found && p.Serial <= s.gone:
		w.wrong("G6: the pages of the ledger %s through %d were deleted, and it is recovered with %+v", s.name, s.gone, p)
	}
	l.count = p.Count
	return nil
}

func (l *ledger) PostRecovery(*persist.Context) error {
	l.recovered = true
	l.shelf.actor = l
	return nil
}

func (l *ledger) PreStart(*persist.Context) error {
	if !l.recovered && !l.w.dead {
		l.w.wrong("G5: the ledger %s starts before it is recovered", l.shelf.name)
	}
	return nil
}

func (l *ledger) PostStop(ctx *persist.Context) {
	if ctx.InShutdown() && !l.w.ending && !l.w.dead {
		l.w.wrong("G8: the ledger %s was stopped, and is told that the system ends", l.shelf.name)
	}
}

func (l *ledger) PreRestart(_ *actor.Context, reason error, _ any) {
	if errors.Is(reason, errTrifle) && !l.w.dead {
		l.w.wrong("G8: the ledger %s was to go on after %v, and is started again", l.shelf.name, reason)
	}
}

func (l *ledger) Resumed(_ *actor.Context, reason error) {
	if !errors.Is(reason, errTrifle) && !l.w.dead {
		l.w.wrong("G8: the ledger %s goes on after %v", l.shelf.name, reason)
	}
}

func (l *ledger) Receive(ctx *persist.Context, msg any) error { return l.receive(ctx, msg, 0) }

// behave handles messages as one of several behaviours.
func (l *ledger) behave(at int) persist.Behaviour {
	return func(ctx *persist.Context, msg any) error { return l.receive(ctx, msg, at) }
}

func (l *ledger) receive(ctx *persist.Context, msg any, at int) error {
	if !l.recovered && !l.w.dead {
		l.w.wrong("G5: the ledger %s got %v before it was recovered", l.shelf.name, msg)
	}
	if at != len(l.pace)-1 && !l.w.dead {
		l.w.wrong("the ledger %s has %d behaviours, and number %d got %v", l.shelf.name, len(l.pace), at, msg)
	}
	m, is := msg.(posting)
	if !is {
		l.told(msg)
		return nil
	}
	switch m.Op {
	case "count":
		l.count += l.pace[at]
	case "save":
		s := l.shelf
		p := ledgerPage{len(s.pages) + 1, l.count}
		s.pages = append(s.pages, p)
		ctx.SaveSnapshot(p)
	case "forget":
		l.shelf.dropped = len(l.shelf.pages)
		l.forgets = append(l.forgets, l.shelf.dropped)
		ctx.DeleteSnapshot()
	case "fail":
		return errOnPurpose
	case "trifle":
		return errTrifle
	case "double": // in place of the last, but for the first of all, which stays below
		if at == 0 {
			l.pace = append(l.pace, 2)
			ctx.Become(l.behave(1))
			break
		}
		l.pace[at] = 2
		ctx.Become(l.behave(at))
	case "stack":
		l.pace = append(l.pace, 3)
		ctx.BecomeStacked(l.behave(at + 1))
	case "single":
		l.pace = l.pace[:max(1, at)]
		ctx.Unbecome()
	}
	if ctx.Message().Reply != nil {
		ctx.Respond(l.count)
	}
	return nil
}

// told notes what a ledger hears of its snapshots.
func (l *ledger) told(msg any) {
	s, w := l.shelf, l.w
	if w.dead {
		return
	}
	w.note("ledger %s: %T", s.name, msg)
	r, err := w.disk.base.Load(context.Background(), l.PersistenceID())
	var p ledgerPage
	if err == nil {
		err = snapshot.JSON().Decode(r.State, &p)
	}
	switch m := msg.(type) {
	case persist.SnapshotSaved:
		switch {
		case errors.Is(err, snapshot.ErrCorrupt), errors.Is(err, persist.ErrNotFound) && s.dropped >= s.saved:
		case err != nil || p.Serial < s.saved:
			w.wrong("G2: the ledger %s was told that revision %d is saved; the store has %+v (%v)", s.name, m.Revision, p, err)
		default:
			s.saved = p.Serial
		}
	case persist.SnapshotDeleted:
		if len(l.forgets) == 1 && err == nil && p.Serial <= l.forgets[0] {
			w.wrong("G6: the ledger %s was told that its snapshot is deleted; the store has %+v", s.name, p)
		}
		l.forgotten(true)
	case persist.SnapshotFailed:
		if m.Err == nil {
			w.wrong("G7: a snapshot of the ledger %s failed and does not say why", s.name)
		}
	case persist.SnapshotDeleteFailed:
		if m.Err == nil {
			w.wrong("G7: the deletion of the snapshot of the ledger %s failed and does not say why", s.name)
		}
		l.forgotten(false)
	}
}

// forgotten notes the end of a deletion, where it is plain which one it was.
func (l *ledger) forgotten(done bool) {
	if done && len(l.forgets) == 1 {
		l.shelf.gone = max(l.shelf.gone, l.forgets[0])
	}
	if len(l.forgets) > 0 {
		l.forgets = l.forgets[1:]
	}
}

// postLedger carries out a step about a ledger.
func (w *process) postLedger(s step) {
	l := w.shelved(s.name)
	key := persist.Key{Pod: ledgers, Name: s.name}
	switch s.op {
	case "stop":
		l.ref.Stop()
	case "poison":
		_ = l.ref.Tell(actor.PoisonPill{})
	case "fault":
		l.faults = s.n
	case "damage": // of one that has been read, so that no recovery is under way
		r, err := w.disk.base.Load(context.Background(), key)
		if l.actor != nil && err == nil && w.disk.damage(key) {
			l.whole, w.damaged[key] = r, true
		}
	case "mend":
		w.mendLedger(l)
	case "retry":
		w.askLedger(l, persist.RetryRecovery{}, nil)
	case "discard":
		w.discardLedger(l)
	default:
		w.askLedger(l, posting{s.op}, nil)
	}
}

// askLedger sends a ledger something that it must answer.
func (w *process) askLedger(l *shelf, msg any, answered func(v any, err error)) {
	w.jobs++
	reply := w.sys.OnReply(func(v any, err error) {
		w.jobs--
		if w.dead {
			return
		}
		w.note("ledger %s answers %T with %v %v", l.name, msg, v, err)
		if errors.Is(err, persist.ErrQuarantined) && !strings.Contains(err.Error(), ledgers+"/"+l.name) {
			w.wrong("the quarantine of the ledger %s is described as %v", l.name, err)
		}
		if answered != nil {
			answered(v, err)
		}
	})
	if err := l.ref.Post(actor.Message{Payload: msg, Reply: reply}); err != nil {
		reply.Fail(err)
	}
}

// discardLedger ends a quarantine without the snapshot.
func (w *process) discardLedger(l *shelf) {
	l.dropped = len(l.pages)
	w.askLedger(l, persist.DiscardSnapshot{}, nil)
}

// corrupt says that a ledger's record cannot be read.
func (w *process) corrupt(l *shelf) bool {
	_, err := w.disk.base.Load(context.Background(), persist.Key{Pod: ledgers, Name: l.name})
	return errors.Is(err, snapshot.ErrCorrupt)
}

// mendLedger puts a damaged record back, as somebody who repairs it.
func (w *process) mendLedger(l *shelf) {
	if m, can := w.disk.damageable(); can && w.corrupt(l) {
		w.must(m.Import(context.Background(), persist.Batch{Records: []persist.Stored{{Key: persist.Key{Pod: ledgers, Name: l.name}, Record: l.whole}}}))
	}
}

// checkLedgers has the quarantines end, at rest, one way or the other.
func (w *process) checkLedgers() {
	for _, name := range sortedKeys(w.shelves) {
		l := w.shelved(name)
		l.faults = 0 // of those there were, one may have led to a quarantine
		corrupt, err := w.corrupt(l), w.ledgerSays(l, persist.RetryRecovery{})
		if isolated := w.isolated(l); corrupt != errors.Is(err, persist.ErrQuarantined) || corrupt != isolated || !corrupt && err != nil {
			w.wrong("G5: the record of the ledger %s is damaged: %t, listed: %t, and it says %v", name, corrupt, isolated, err)
		}
		switch {
		case !corrupt:
			if err := w.ledgerSays(l, persist.DiscardSnapshot{}); err == nil {
				w.wrong("G5: the snapshot of the ledger %s was discarded without need", name)
			}
		case w.seed%2 == 0:
			l.dropped = len(l.pages)
			err := w.ledgerSays(l, persist.DiscardSnapshot{})
			if _, there := w.disk.base.Load(context.Background(), persist.Key{Pod: ledgers, Name: name}); err != nil || !errors.Is(there, persist.ErrNotFound) {
				w.wrong("G6: the snapshot of the ledger %s is discarded: %v; the store says %v", name, err, there)
			}
		default:
			if err := w.ledgerSays(l, posting{"count"}); !errors.Is(err, persist.ErrQuarantined) {
				w.wrong("G5: the ledger %s is in quarantine, and says %v", name, err)
			}
			w.mendLedger(l)
			if err := w.ledgerSays(l, persist.RetryRecovery{}); err != nil {
				w.wrong("G5: the record of the ledger %s is repaired, and it says %v", name, err)
			}
		}
		if err := w.ledgerSays(l, posting{"count"}); err != nil || w.isolated(l) {
			w.wrong("G5: the ledger %s is not back: %v", name, err)
		}
	}
	if f := w.pods.Committer().Figures(); f.Queued != 0 || f.Applied > f.Units {
		w.wrong("the committer is at rest, with %+v", f)
	}
}

func (w *process) ledgerSays(l *shelf, msg any) (said error) {
	w.askLedger(l, msg, func(_ any, err error) { said = err })
	w.exec.RunUntil(func() bool { return w.jobs == 0 })
	return said
}

// isolated says that a ledger is listed as being in quarantine.
func (w *process) isolated(l *shelf) bool {
	for _, q := range w.pods.Committer().Quarantined() {
		if q.Ref == l.ref && q.Key == (persist.Key{Pod: ledgers, Name: l.name}) && errors.Is(q.Reason, persist.ErrQuarantined) {
			return true
		}
	}
	return false
}
