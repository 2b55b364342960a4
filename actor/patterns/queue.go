package patterns

import (
	"fmt"

	"github.com/twinsrv/twinsrv/actor"
)

// Status asks an actor of this package that holds a queue for its State. An ask
// is answered with it; else it is told to the sender.
type Status struct{}

// Pause has an actor of this package that holds a queue hand out nothing more
// until Continue comes. What it has handed out goes on, and what comes in waits
// as long as there is room. An ask is answered with the State.
type Pause struct{}

// Continue undoes Pause. An ask is answered with the State.
type Continue struct{}

// State is how a queue stands.
type State struct {
	Paused   bool
	Waiting  int    // in the queue
	Capacity int    // how many can wait; of a KeyedThrottlingRelay, for each key
	Active   int    // workers of a ServiceManager, open futures, keys that a KeyedThrottlingRelay knows
	Passed   uint64 // handed out, since the actor started
	Refused  uint64 // found no room, since the actor started
}

// control does what a Status, Pause or Continue says, and returns false of any
// other message. resumed says that what waits may go on.
func (s *State) control(ctx *actor.Context, msg any) (done, resumed bool) {
	answers := ctx.Message().Reply != nil
	switch msg.(type) {
	case Status:
		answers = answers || ctx.Sender() != nil
	case Pause:
		s.Paused = true
	case Continue:
		resumed, s.Paused = s.Paused, false
	default:
		return false, false
	}
	if answers {
		ctx.Respond(*s)
	}
	return true, resumed
}

// fifo is messages that wait, first come first served. The zero value is empty.
type fifo struct {
	items []actor.Message
	head  int
}

func (q *fifo) len() int { return len(q.items) - q.head }

func (q *fifo) push(m actor.Message) { q.items = append(q.items, m) }

// pop takes out the message that came first. There must be one.
func (q *fifo) pop() actor.Message {
	m := q.items[q.head]
	q.items[q.head] = actor.Message{}
	q.head++
	switch n := q.len(); {
	case n == 0 && cap(q.items) > 64:
		*q = fifo{} // a burst does not keep its room
	case n == 0:
		q.items, q.head = q.items[:0], 0
	case q.head >= 64 && q.head > n:
		q.items = append(make([]actor.Message, 0, n+n/4), q.items[q.head:]...)
		q.head = 0
	}
	return m
}

// abandon refuses all that waits at an actor that stops.
func (q *fifo) abandon(at *actor.Ref) {
	for q.len() > 0 {
		refuse(at, q.pop(), stopped(at))
	}
}

// room is the queue length that a setting stands for: 0 is the default, and
// below zero nothing waits.
func room(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return max(n, 0)
}

func stopped(at *actor.Ref) error {
	return fmt.Errorf("%s, with the message in hand: %w", at, actor.ErrStopped)
}
