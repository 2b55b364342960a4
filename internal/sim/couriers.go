package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// carry is a step about messages of SendOnce that are refused, or whose sender
// is deleted, and about event-sourced entities whose record is lost.
const carry kind = "carry"

// The pods of it.
const (
	couriers = "couriers" // send parcels
	doors    = "doors"    // take them, or not; only "open" creates one
	diaries  = "diaries"  // event-sourced logs whose records get lost
)

type (
	bring struct{ ID, To, Way string }
	knock struct{ ID, From, Way string }
	open  struct{}

	courier struct {
		Sent []string `json:"sent"`
	}
	door struct {
		Got []parcel `json:"got"`
	}
)

// brought is what is known of a parcel.
type brought struct {
	step
	process int
	outcome outcome
	letters int // dead letters of it
}

// way is what a door makes of the parcel.
func (b *brought) way() string {
	if b.n%30 == 7 {
		return "slow" // seldom, since time at rest is dear
	}
	return []string{"", "", "", "rejects", "fails", "nowhere"}[b.n%6]
}

func planCarry(p *plan, rng *rand.Rand) step {
	if !p.couriers {
		return step{}
	}
	if rng.IntN(3) == 0 {
		name := p.anyName(rng)
		note := func() step {
			return step{kind: carry, op: choose(rng, "note", "note", "add", "touch", "look"), pod: diaries, name: name, who: rng.IntN(senders)}
		}
		p.add(note())
		p.add(note())
		p.add(step{kind: goOn, d: 30 * time.Millisecond})
		if rng.IntN(2) == 0 {
			p.add(step{kind: send, pod: diaries, name: name, op: "passivate"})
			p.add(step{kind: goOn, d: 10 * time.Millisecond})
		}
		p.add(step{kind: carry, op: "lose", pod: diaries, name: name})
		p.add(note())
		return step{kind: get, pod: diaries, name: name}
	}
	do := func(op string) step {
		return step{kind: carry, op: op, pod: couriers, name: p.anyName(rng), to: p.anyName(rng), n: rng.IntN(1000), who: rng.IntN(senders)}
	}
	if rng.IntN(3) == 0 {
		return p.manyParcels(rng, do("open"))
	}
	for range rng.IntN(4) {
		p.add(do(choose(rng, "bring", "bring", "bring", "open")))
	}
	return do(choose(rng, "bring", "open", "delete", "discard", "passivate"))
}

// manyParcels has a courier bring one door more than it takes at once, so that
// one is refused for the time being while the next is on its way.
func (p *plan) manyParcels(rng *rand.Rand, open step) step {
	p.add(open)
	p.add(step{kind: goOn, d: 30 * time.Millisecond})
	for range 4 + rng.IntN(10) {
		one := open
		one.op, one.n = "bring", 0
		p.add(one)
		if rng.IntN(2) == 0 {
			p.add(step{kind: steps, n: 1 + rng.IntN(6)})
		}
	}
	p.add(step{kind: goOn, d: 20 * time.Millisecond})
	return step{}
}

// openCouriers starts the pods.
func (w *process) openCouriers() {
	if !w.plan.couriers {
		return
	}
	if w.brought == nil {
		w.brought, w.dismissed = map[string]*brought{}, map[string]bool{}
	}
	for _, d := range []entity.Definition{
		w.sourcedLogs(diaries),
		entity.Type[courier]{Name: couriers, Handlers: entity.Handlers[courier]{
			"bring": entity.On(func(c *entity.Context, s *courier, m bring) error {
				s.Sent = append(s.Sent, m.ID)
				pod := doors
				if m.Way == "nowhere" {
					pod = m.Way
				}
				c.SendOnce(pod, m.To, knock{m.ID, c.Name(), m.Way})
				return nil
			}),
		}},
		entity.Type[door]{Name: doors, Create: entity.Creation{By: []string{"open"}}, Handlers: entity.Handlers[door]{
			"open": entity.On(func(*entity.Context, *door, open) error { return nil }),
			"knock": entity.On(func(_ *entity.Context, s *door, m knock) error {
				s.Got = append(s.Got, parcel{m.ID, m.From})
				switch m.Way {
				case "rejects":
					return entity.Rejectf("nobody is at home")
				case "fails":
					return errOnPurpose
				case "slow": // longer than a deletion waits
					return w.sys.Sleep(context.Background(), 6*time.Second)
				}
				return nil
			}),
		}},
	} {
		_, err := w.pods.Start(context.Background(), d)
		w.must(err)
	}
	w.sys.DeadLetters().Subscribe(w.undelivered)
}

// undelivered notes the dead letter of a parcel.
func (w *process) undelivered(z actor.ZombieMsg) {
	u, is := z.Message.Payload.(entity.Undelivered)
	if !is || u.Type != "knock" || w.dead {
		return
	}
	var k knock
	w.must(snapshot.Msgpack().Decode(u.Body, &k))
	w.note("parcel %s is undelivered: %v", k.ID, z.Reason)
	b := w.brought[k.ID]
	if b == nil || k.From != b.name || z.To != doors+"/"+b.to {
		w.wrong("G3: nobody has sent the parcel %+v, which is not delivered to %s", k, z.To)
		return
	}
	b.letters++
}

// carryOut carries out a step about couriers.
func (w *process) carryOut(s step) {
	switch {
	case s.op == "lose":
		w.loseRecord(persist.Key{Pod: s.pod, Name: s.name})
	case s.pod == diaries:
		s.kind = send
		w.command(s)
	case s.op == "bring":
		b := &brought{step: s, process: w.number}
		w.brought[s.id] = b
		w.tellCourier(couriers, s.name, bring{s.id, s.to, b.way()}, func(err error) {
			w.tick()
			w.note("bring of %s: %v", s.id, err)
			switch {
			case err == nil:
				b.outcome = done
			case !errors.Is(err, persist.ErrUnknown) && !errors.Is(err, actor.ErrTimeout):
				b.outcome = refused
			}
		})
	case s.op == "open":
		w.tellCourier(doors, s.to, open{}, nil)
	case s.op == "passivate":
		w.tellCourier(couriers, s.name, entity.Passivate(), nil)
	case s.op == "delete":
		w.tellCourier(couriers, s.name, entity.Delete(entity.Condition{}), func(err error) {
			w.note("delete of %s: %v", s.name, err)
			if errors.Is(err, entity.ErrBusy) && !strings.Contains(err.Error(), "not delivered yet") {
				w.wrong("the courier %s cannot be deleted: %v", s.name, err)
			}
		})
	case s.op == "discard":
		w.dismissed[s.name] = true
		w.tellCourier(couriers, s.name, entity.Discard(), nil)
	}
}

func (w *process) tellCourier(pod, name string, msg any, answered func(err error)) {
	w.jobs++
	reply := w.sys.OnReply(func(_ any, err error) {
		w.jobs--
		if answered != nil && !w.dead {
			answered(err)
		}
	})
	if err := w.ref(pod, name).Post(actor.Message{Payload: msg, Reply: reply}); err != nil {
		reply.Fail(err)
	}
}

// loseRecord takes a record out of the store, as somebody may who mends a file
// by hand. The journal has the events still, where it keeps all.
func (w *process) loseRecord(key persist.Key) {
	if w.plan.keep > 0 || w.plan.keepFor > 0 || len(w.disk.writing) > 0 {
		return
	}
	if _, err := w.disk.base.Load(context.Background(), key); err != nil {
		return
	}
	w.lost = true
	_, err := w.disk.base.Commit(context.Background(), []persist.Unit{{Key: key, Delete: true, Force: true}})
	w.must(err)
	w.note("the record of %s is lost", key)
}

// checkCouriers looks whether every parcel has arrived, once and in order, or is
// a dead letter. Dead letters are not durable: when a process ends, or the
// sender's commit fails, before the sender has noted what became of a parcel, then
// one that was told of as refused by nobody may arrive later. And of one that was
// refused nobody is told when a process ends, or a commit has an unknown outcome,
// after the receiver has noted it.
func (w *process) checkCouriers() {
	if w.brought == nil {
		return
	}
	for i := range w.plan.names {
		w.read(step{kind: get, pod: diaries, name: entityName(i)})
	}
	w.exec.RunUntil(func() bool { return w.jobs == 0 })
	arrived := map[string]bool{}
	for i := range w.plan.names {
		w.checkDoor(entityName(i), arrived)
	}
	for _, id := range sortedKeys(w.brought) {
		b := w.brought[id]
		there, letter := arrived[id], b.letters > 0
		last := b.process == w.number-1 // the process that has come to rest
		refusing := b.way() == "rejects" || b.way() == "fails"
		switch dismissed := w.dismissed[b.name]; {
		case b.outcome == refused && (there || letter):
			w.wrong("G3: the parcel %s was refused, and arrived: %t, is a dead letter: %t", id, there, letter)
		case there && refusing:
			w.wrong("G3: the parcel %s was to be refused, and has arrived", id)
		case b.outcome == done && !there && !letter && !dismissed && (last && !w.disk.unknown || !refusing):
			w.wrong("G7: the parcel %s was sent, has not arrived and is no dead letter", id)
		case there && letter && !dismissed && last && !w.disturbed:
			w.wrong("G3: the parcel %s has arrived and is a dead letter", id)
		}
	}
}

// checkDoor looks at what has come to a door.
func (w *process) checkDoor(name string, arrived map[string]bool) {
	p, err := w.pods.Pod(doors)
	w.must(err)
	v, err := p.Get(context.Background(), name)
	if errors.Is(err, entity.ErrNotFound) {
		return
	}
	w.must(err)
	state, err := decoded[door](&v)
	w.must(err)
	last := map[string]int{}
	for _, got := range state.Got {
		b := w.brought[got.ID]
		switch {
		case arrived[got.ID]:
			w.wrong("G3: the parcel %s has arrived twice", got.ID)
		case b == nil || b.to != name || b.name != got.From:
			w.wrong("G3: the parcel %+v has come to %s", got, name)
		case b.at < last[got.From+got.ID[:1]]: // of one courier, given by one sender
			w.wrong("G1: the parcel %s has come to %s behind a later one", got.ID, name)
		default:
			last[got.From+got.ID[:1]] = b.at
		}
		arrived[got.ID] = true
	}
}
