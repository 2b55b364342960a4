package sim

import (
	"errors"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
)

// order is a transfer that was asked for, perhaps several times.
type order struct {
	step
	durable bool // somebody was told that it is done, by an account that is durable by then
	acked   bool
	answer  int
	denied  bool // it was rejected
	tries   int
	open    int // tries that have no certain outcome
}

func (o *order) from() string { return o.pod + "/" + o.name }

// bankCommand sends a message to an account. A repetition is of an earlier
// transfer, to the same account with the same id.
func (w *process) bankCommand(s step) {
	var msg any
	o := &order{step: s}
	name, to, _ := strings.Cut(s.to, "/")
	switch s.op {
	case "passivate":
		w.passivate(s)
		return
	case "overdraw":
		msg = overdraw{s.id, name, to}
	case "repeat":
		if o = w.repeatable(s.n); o == nil {
			return
		}
	}
	if msg == nil {
		name, to, _ := strings.Cut(o.to, "/")
		msg = entity.WithID(o.id, transfer{o.id, name, to, o.n})
	}
	if o.tries == 0 {
		w.orders = append(w.orders, o)
	}
	o.tries++
	o.open++
	key := &op{step: o.step}
	w.waiting[key] = true
	reply := w.sys.OnReply(func(v any, err error) {
		delete(w.waiting, key)
		w.ordered(o, v, err)
	})
	if err := w.ref(o.pod, o.name).Post(actor.Message{Payload: msg, Reply: reply}); err != nil {
		reply.Fail(err)
	}
}

// passivate has an account leave memory.
func (w *process) passivate(s step) {
	if err := w.ref(s.pod, s.name).Post(actor.Message{Payload: entity.Passivate()}); err != nil {
		w.note("%v", err)
	}
}

// repeatable is one of the last transfers.
func (w *process) repeatable(n int) *order {
	for i := len(w.orders) - 1 - n%5; i >= 0; i-- {
		if w.orders[i].op == "transfer" {
			return w.orders[i]
		}
	}
	return nil
}

// ordered notes what an account answered. Every answer to a transfer is the
// same, for as long as the account has not lost what it was asked.
func (w *process) ordered(o *order, v any, err error) {
	if w.dead {
		return
	}
	w.tick()
	w.note("%s of %s at %s: %v %v", o.op, o.id, o.from(), v, err)
	var no *entity.RejectedError
	switch {
	case errors.Is(err, persist.ErrUnknown), errors.Is(err, actor.ErrTimeout):
		return
	case errors.As(err, &no):
		if o.acked && o.pod != tills {
			w.wrong("G2: %v was done and then rejected: %v", o.step, err)
		}
		o.denied = true
	case err == nil:
		left, is := v.(int)
		if !is || o.acked && o.pod != tills && o.answer != left {
			w.wrong("a repetition of %v was answered with %v, before with %d", o.step, v, o.answer)
		}
		if o.denied && o.pod != tills {
			w.wrong("%v was rejected and then done", o.step)
		}
		o.acked, o.answer, o.durable = true, left, o.pod != tills
	}
	o.open--
}

// checkAccounts looks at the accounts once everything has arrived.
func (r *run) checkAccounts(found map[string]account) {
	sent, got := map[string]string{}, map[string]string{}
	sum := 0
	for _, name := range sortedKeys(found) {
		a := found[name]
		sum += a.Balance - endowment
		if a.Balance < 0 {
			r.wrong("%s has %d", name, a.Balance)
		}
		for _, id := range a.Sent {
			if at, twice := sent[id]; twice {
				r.wrong("transfer %s was withdrawn at %s and at %s", id, at, name)
			}
			sent[id] = name
		}
		r.checkArrivals(name, found, got)
	}
	if sum != 0 {
		r.wrong("the sum of all accounts has changed by %d", sum)
	}
	for _, o := range r.orders {
		_, out := sent[o.id]
		at, in := got[o.id]
		switch {
		case out != in, in && at != o.to:
			r.wrong("%v was withdrawn: %t, arrived: %t at %q", o.step, out, in, at)
		case o.durable && !out:
			r.wrong("G5: %v was acknowledged and is not done", o.step)
		case out && (o.op == "overdraw" || o.open == 0 && !o.acked):
			r.wrong("G3: %v was refused and is done", o.step)
		}
	}
}

// checkArrivals looks whether everything has come to an account once, from whom
// it should, and in each sender's order.
func (r *run) checkArrivals(name string, found map[string]account, got map[string]string) {
	last := map[string]int{}
	for _, p := range found[name].Got {
		if at, twice := got[p.ID]; twice {
			r.wrong("transfer %s arrived at %s and at %s", p.ID, at, name)
		}
		got[p.ID] = name
		place := 1 + slices.Index(found[p.From].Sent, p.ID)
		if place <= last[p.From] {
			r.wrong("G1: %s got transfer %s of %s before an earlier one, or for nothing", name, p.ID, p.From)
		}
		last[p.From] = place
	}
}
