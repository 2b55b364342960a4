package patterns

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// Reaped is what a Reaper has gathered.
type Reaped struct {
	// Results are those of all who were asked, in the order in which they were.
	Results []ReapResult
	// Complete says that each of them has answered with a value.
	Complete bool
}

// ReapResult is what one target has answered.
type ReapResult struct {
	Target actor.Target
	Value  any
	// Err is its error, or why there is no answer: actor.ErrTimeout at the
	// deadline.
	Err error
}

// ValuesOf returns the values of type T in what was gathered, in its order.
func ValuesOf[T any](r Reaped) (values []T) {
	for _, one := range r.Results {
		if v, ok := one.Value.(T); ok && one.Err == nil {
			values = append(values, v)
		}
	}
	return values
}

// gathering is an actor's reaps in progress. Answers come by the actor's own
// mailbox, with the promise that was answered: that says whose they are.
type gathering struct {
	limit int
	open  map[*actor.Promise]*slot
	reaps map[uint64]*reap // by number
	count uint64
}

func newGathering(limit int) gathering {
	if limit <= 0 {
		limit = 1000
	}
	return gathering{limit: limit, open: make(map[*actor.Promise]*slot), reaps: make(map[uint64]*reap)}
}

// reap is one in progress.
type reap struct {
	number  uint64
	request actor.Message
	slots   []*slot
	left    int // slots without an answer
	timer   actor.Timer
	done    func(ctx *actor.Context, request actor.Message, r Reaped)
}

// slot is the place of one target's answer. Whoever answers writes it, and then
// sends the message with which the reaper looks at it.
type slot struct {
	reap   *reap
	target actor.Target
	child  *actor.Ref // the target, when it is asked as somebody's child
	reply  *actor.Promise
	v      any
	err    error
	came   bool // the reaper's
}

// deadline is the timer's message.
type deadline struct{ number uint64 }

// notCounted is what a reaper answers that is asked as one of a host's children:
// it is there to ask, and not one of them.
type notCounted struct{}

// reaping is the key in the system's store by which reapers know each other.
type reaping struct{ ref *actor.Ref }

func enter(ctx *actor.Context) { ctx.System().Global().Set(reaping{ctx.Self()}, true) }
func leave(ctx *actor.Context) { ctx.System().Global().Delete(reaping{ctx.Self()}) }

func reaps(r *actor.Ref) bool {
	if r == nil {
		return false
	}
	_, ok := r.System().Global().Get(reaping{r})
	return ok
}

// begin asks all targets, and the host's children but reapers.
func (g *gathering) begin(ctx *actor.Context, r *reap, msg any, targets []actor.Target, host *actor.Ref, timeout time.Duration) {
	if len(g.reaps) >= g.limit {
		refuse(ctx.Self(), r.request, &actor.FullError{Ref: ctx.Self(), Capacity: g.limit})
		return
	}
	for _, t := range targets {
		r.slots = append(r.slots, &slot{reap: r, target: t})
	}
	if host != nil {
		for _, child := range host.Children() {
			if child != ctx.Self() && !child.Stopped() && !reaps(child) {
				r.slots = append(r.slots, &slot{reap: r, target: child, child: child})
			}
		}
	}
	g.count++
	r.number, r.left = g.count, len(r.slots)
	g.reaps[r.number] = r
	if r.left == 0 {
		g.finish(ctx, r)
		return
	}
	r.timer = ctx.ScheduleOnce(timeout, ctx.Self(), deadline{r.number})
	for _, s := range r.slots {
		g.ask(ctx, s, msg)
	}
}

func (g *gathering) ask(ctx *actor.Context, s *slot, msg any) {
	self := ctx.Self()
	s.reply = ctx.System().OnReply(func(v any, err error) {
		s.v, s.err = v, err
		if err != nil {
			v = err
		}
		_ = self.Post(actor.Message{Payload: v, Reply: s.reply}) // its mailbox is unbounded
	})
	g.open[s.reply] = s
	m := actor.Message{Payload: msg, Reply: s.reply}
	if s.child != nil {
		m.Sender = self
	}
	if s.target == nil {
		s.reply.Fail(fmt.Errorf("%w: no target", actor.ErrInvalid))
	} else if err := post(s.target, m); err != nil {
		s.reply.Fail(err)
	}
}

// control takes what is the gathering's own, and returns false of any other
// message.
func (g *gathering) control(ctx *actor.Context, msg any) bool {
	if d, ok := msg.(deadline); ok {
		if r := g.reaps[d.number]; r != nil {
			g.finish(ctx, r)
		}
		return true
	}
	m := ctx.Message()
	if m.Reply == nil {
		return false
	}
	if s, ok := g.open[m.Reply]; ok && m.Reply.Done() { // else it is the question, come back to who asks it
		delete(g.open, m.Reply)
		s.came = true
		if s.reap.left--; s.reap.left == 0 {
			g.finish(ctx, s.reap)
		}
		return true
	}
	switch {
	case m.Reply.Done():
		refuse(ctx.Self(), m, fmt.Errorf("after the deadline: %w", actor.ErrTimeout))
	case reaps(m.Sender):
		ctx.Respond(notCounted{})
	default:
		return false
	}
	return true
}

// finish hands over what has come.
func (g *gathering) finish(ctx *actor.Context, r *reap) {
	delete(g.reaps, r.number)
	if r.timer != nil {
		r.timer.Stop()
	}
	result := Reaped{Results: make([]ReapResult, 0, len(r.slots)), Complete: true}
	for _, s := range r.slots {
		one := ReapResult{Target: s.target, Err: actor.ErrTimeout}
		if s.came {
			one.Value, one.Err = s.v, s.err
		}
		delete(g.open, s.reply)
		if s.gone(one) {
			continue
		}
		result.Complete = result.Complete && one.Err == nil
		result.Results = append(result.Results, one)
	}
	r.done(ctx, r.request, result)
}

// gone says that a host's child is none any more, or was none to ask.
func (s *slot) gone(one ReapResult) bool {
	if s.child == nil {
		return false
	}
	if _, reaper := one.Value.(notCounted); reaper {
		return true
	}
	return s.child.Stopped() && (!s.came || errors.Is(one.Err, actor.ErrStopped))
}

// abandon refuses the requests in progress.
func (g *gathering) abandon(at *actor.Ref) {
	for _, n := range slices.Sorted(maps.Keys(g.reaps)) {
		refuse(at, g.reaps[n].request, stopped(at))
	}
	clear(g.reaps)
}
