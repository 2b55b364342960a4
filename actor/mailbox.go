package actor

import "github.com/twinsrv/twinsrv/internal/mutant"

// The user mailbox is two slices. Senders append to queue under the lock; the
// turn takes messages from batch without it, and swaps the two when batch is
// used up. Who wakes an actor at rest puts the message into batch itself, and
// needs no lock for that when the mailbox has no limit. There
// is no node and no allocation per message. Buffers that a burst made large are
// given back (see buffers) when the actor comes to rest, or after some swaps
// that used little of them.

const (
	keptCap    = 64 // messages; buffers up to this size are kept at rest
	quietSwaps = 16
)

// Mailboxes that senders may have to wait for, that drop their oldest message,
// or that are a user's own are a lane instead.

// enqueue returns ErrStopped, unwrapped, or a *FullError, when it did not take
// the message. w is the worker whose handler sends, or nil.
func (r *Ref) enqueue(m Message, w Worker) error {
	if r.flags.Load() == resting && r.flags.CompareAndSwap(resting, 0) {
		// No turn is on and this sender wakes the next, so batch is nobody else's.
		r.batch, r.next, r.uncounted = append(r.batch[:0], m), 0, true
		r.wake(w)
		return nil
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return ErrStopped
	}
	if c := r.capacity; c != 0 {
		if c < 0 {
			return r.enqueueLane(m, w)
		}
		if len(r.queue)+r.left() >= int(c) && !beyondCapacity(m.Payload) {
			return r.tooMuch(m)
		}
	}
	if mutant.On(mutant.PoisonOvertakes) && len(r.queue) > 0 && m.Payload == (PoisonPill{}) {
		m, r.queue[0] = r.queue[0], m
	}
	wake := false
	if r.flags.Load()&(resting|queued) != queued {
		if r.raise(0, holding) { // at rest and not held: both buffers are used up
			r.batch, r.next = append(r.batch[:0], m), 0
			r.put++
			r.mu.Unlock()
			r.wake(w)
			return nil
		}
		wake = r.raise(queued, holding) // the turn may have gone to rest meanwhile
	}
	if len(r.queue) == cap(r.queue) && len(r.queue) >= keptCap {
		r.queue = r.sys.buffers.grown(r.queue)
	}
	r.queue = append(r.queue, m)
	r.mu.Unlock()
	if wake {
		r.wake(w)
	}
	return nil
}

// tooMuch refuses or drops m. mu is held, and given up.
func (r *Ref) tooMuch(m Message) error {
	err := r.isFull(int(r.capacity))
	r.mu.Unlock()
	if mutant.On(mutant.FullDropsSilently) {
		return nil
	}
	if r.props.policy == DropNewest {
		r.sys.deadLetter(r.Path(), m, err)
		return nil
	}
	return err
}

func (r *Ref) wake(w Worker) {
	if w != nil {
		w.Wake(Task{r})
	} else {
		r.sys.exec.Schedule(Task{r})
	}
}

// beyondCapacity says that a payload is taken by a full mailbox, because
// nobody could send it again.
func beyondCapacity(payload any) bool {
	switch payload.(type) {
	case PoisonPill, Terminated, *timer, *piped, *delegationEnd:
		return true
	}
	return false
}

type taken uint8

const (
	tookMessage taken = iota
	tookNothing       // look for signals again
	tookRest          // the actor is at rest; the turn must not touch it any more
)

// take returns the next user message, or brings the actor to rest when there
// is nothing to do.
func (r *Ref) take() (Message, taken) {
	if r.hold == 0 {
		if int(r.next) < len(r.batch) {
			return r.pop(), tookMessage
		}
		if r.restAtOnce() {
			return Message{}, tookRest
		}
	}
	r.mu.Lock()
	switch {
	case r.is(urgent):
		r.mu.Unlock()
		return Message{}, tookNothing
	case r.hold != 0 || len(r.queue) == 0:
		if r.hold == 0 && r.capacity < 0 {
			if m, took := r.takeLane(); took != tookRest {
				r.mu.Unlock()
				return m, took
			}
		}
		r.rest()
		r.mu.Unlock()
		return Message{}, tookRest
	}
	r.swap()
	if mutant.On(mutant.OvertakeInBacklog) && len(r.batch) > 3 {
		r.batch[0], r.batch[1] = r.batch[1], r.batch[0]
	}
	m := r.batch[0]
	r.batch[0] = Message{}
	r.next = 1
	r.put += uint32(len(r.batch) - 1)
	r.mu.Unlock()
	return m, tookMessage
}

func (r *Ref) pop() Message {
	m := r.batch[r.next]
	r.batch[r.next] = Message{}
	r.next++
	if r.uncounted {
		r.uncounted = false
	} else {
		r.took.Store(r.took.Load() + 1) // only the turn writes it
	}
	return m
}

// left is how many messages of batch are not taken yet, but for the uncounted one.
// mu is held.
func (r *Ref) left() int { return int(int32(r.put - r.took.Load())) }

// swap gives the senders the used-up buffer and takes theirs. mu is held, and
// left is to be renewed before it is not.
func (r *Ref) swap() {
	spent := r.batch[:0]
	if c := cap(spent); c > keptCap {
		if len(r.queue) >= c/4 {
			r.quiet = 0
		} else if r.quiet++; r.quiet >= quietSwaps {
			r.sys.buffers.giveBack(spent)
			spent, r.quiet = nil, 0
		}
	}
	r.batch, r.queue, r.next = r.queue, spent, 0
}

// restAtOnce ends the turn where batch is used up, and no flag says that something
// may be in queue, from before a hold or since the last rest. So queue is no large
// buffer either.
func (r *Ref) restAtOnce() bool {
	if r.flags.Load() != 0 || cap(r.batch) > keptCap {
		return false
	}
	t := r.call
	r.call = nil // it may be another turn's as soon as the actor is at rest
	if r.flags.CompareAndSwap(0, resting) {
		return true
	}
	r.call = t
	return false
}

// rest ends the turn. mu is held.
func (r *Ref) rest() {
	if int(r.next) == len(r.batch) {
		if cap(r.batch) > keptCap {
			r.sys.buffers.giveBack(r.batch)
			r.batch, r.next = nil, 0
		}
		if len(r.queue) == 0 && cap(r.queue) > keptCap {
			r.sys.buffers.giveBack(r.queue)
			r.queue = nil
		}
	}
	r.call = nil
	left := r.flags.Load()&^(holding|queued) | resting
	if r.hold != 0 {
		left |= holding
	}
	r.flags.Store(left) // until then nobody else writes them
}

// putBack puts messages ahead of all that wait, in order. For the turn.
func (r *Ref) putBack(ms []Message) {
	if len(ms) == 0 {
		return
	}
	if int(r.next) >= len(ms) {
		r.next -= uint32(len(ms))
		copy(r.batch[r.next:], ms)
	} else {
		front := make([]Message, 0, len(ms)+len(r.batch)-int(r.next))
		front = append(front, ms...)
		r.batch = append(front, r.batch[r.next:]...)
		r.next = 0
	}
	r.took.Store(r.took.Load() - uint32(len(ms)))
}

const (
	holdUser  uint8 = 1 << iota // Context.Hold, Props.Held
	holdPhase                   // not running: starting, failed, stopping
)

// setHold changes the reasons why user messages wait. For the turn, which
// looks again before it rests, so nobody needs waking.
func (r *Ref) setHold(set, unset uint8) { r.hold = r.hold&^unset | set }
