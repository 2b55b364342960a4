package actor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Ref is an actor: its address for senders, and inside, its cell. A Ref stays
// valid when its actor has stopped; it then leads to dead letters. All exported
// methods may be called from any goroutine.
//
// Everything that only some actors need is behind a pointer that is nil until
// then, because there may be millions of idle ones.
//
// The order of the fields is that of who writes them: hardly anybody, senders, the
// turn. The flags come first, so that they share a cache line with nothing that
// senders or the turn write for each message of a burst.
type Ref struct {
	flags    atomic.Uint32 // urgent and so on
	capacity int32         // of the mailbox; 0 when unbounded, below when it is a lane
	sys      *System
	parent   *Ref // nil for the root
	name     string
	newActor func() Actor // Props.New
	props    *spec        // shared by many
	kin      atomic.Pointer[family]

	// Guarded by mu, the only lock that a sender takes.
	mu       sync.Mutex
	queue    []Message // what senders append to; the turn swaps it with batch
	payload  any       // of plain
	rare     *rare
	put      uint32  // messages put into batch
	plain    sigKind // a signal that is nothing else but payload, ahead of rare.signals
	closed   bool    // takes no more messages
	gone     bool    // has told its watchers; takes no more signals
	finished bool    // all done, the name is free

	number uint32 // stands for a generated name; else 0; never written

	// Owned by the turn. The order of small fields saves 16 bytes.
	took      atomic.Uint32 // messages taken out of batch, so that put-took are left
	phase     phase
	hold      uint8     // reasons why user messages wait
	quiet     uint8     // swaps in a row that used little of a large buffer
	uncounted bool      // a message of batch is not in put
	cause     StopCause // written before gone, then read by others under mu
	leaving   bool      // its parent waits for it to stop; guarded by the parent's family.mu
	heed      heed      // the parent's; owned by the parent's turn
	heard     bool      // the parent has got Terminated; owned by the parent's turn
	stopAsked bool
	draining  draining
	next      uint32 // of batch
	batch     []Message
	call      *call // what the turn in progress has in hand; nil when none is
	instance  Actor
	extra     *extras
}

// Flags of a Ref that others read while they do not hold mu. Who holds it may change
// them, and so may the turn. A sender who does not hold it may take resting away where
// nothing else is set, and the turn may set it where nothing is: so a message finds
// its actor at rest, and leaves it at rest, at the price of two atomic operations.
const (
	urgent  uint32 = 1 << iota // plain or rare.signals is set
	ending                     // has begun to stop or has retired
	resting                    // neither queued for a turn nor in one
	holding                    // as of the last rest, no user message may be taken: held, failed, stopping
	queued                     // queue was appended to since the last rest
	limited                    // the mailbox has a capacity, or is a lane: each sender takes the lock
)

func (r *Ref) is(flag uint32) bool { return r.flags.Load()&flag != 0 }
func (r *Ref) set(flag uint32)     { r.flags.Or(flag) }
func (r *Ref) unset(flag uint32)   { r.flags.And(^flag) }

// raise sets a flag and, unless another is set, ends the actor's rest. True says that
// it was at rest, and the caller must schedule it. mu is held.
func (r *Ref) raise(flag, unless uint32) (wake bool) {
	for {
		before := r.flags.Load()
		after := before | flag
		if before&unless == 0 {
			after &^= resting
		}
		if after == before || r.flags.CompareAndSwap(before, after) {
			return before&^after&resting != 0
		}
	}
}

// Name returns the last part of the path.
func (r *Ref) Name() string {
	if r.number != 0 {
		return string(appendNumber(nil, uint64(r.number)))
	}
	return r.name
}

// Parent returns the actor that this one is a child of; nil for the root.
func (r *Ref) Parent() *Ref { return r.parent }

// System returns the system that the actor lives in.
func (r *Ref) System() *System { return r.sys }

// String returns the path.
func (r *Ref) String() string { return r.Path() }

// Tell queues a message without a sender. It returns nil, or a *FullError
// (which wraps ErrMailboxFull) when the message was not taken. Where the
// mailbox's policy is Block it waits for room, except inside a turn. A message to a stopped actor becomes a dead
// letter, unless the parent's OnAbsent takes it; that is no error.
func (r *Ref) Tell(msg any) error { return r.Post(Message{Payload: msg}) }

// TellFrom is Tell with a sender, which may be nil.
func (r *Ref) TellFrom(msg any, sender *Ref) error {
	return r.Post(Message{Payload: msg, Sender: sender})
}

// Post is Tell for a whole message. The Reply of a dead letter fails with
// ErrStopped.
func (r *Ref) Post(m Message) error { return r.postBy(m, nil) }

// TryPost is like Post, but returns ErrStopped instead of making a dead letter
// when the actor no longer takes messages; then m is as if never sent. It is
// for registries that resolve a name again.
func (r *Ref) TryPost(m Message) error {
	err := r.enqueue(m, nil)
	if err != nil && r.waits(err) {
		err = r.awaitRoom(context.Background(), 0, m)
	}
	return err
}

// TellContext is Tell, but waits for room in a mailbox of Policy Block only
// until ctx ends; the error wraps then ErrMailboxFull and ctx's.
func (r *Ref) TellContext(ctx context.Context, msg any) error {
	m := Message{Payload: msg}
	err := r.enqueue(m, nil)
	if err != nil && r.waits(err) {
		err = r.awaitRoom(ctx, 0, m)
	}
	if errors.Is(err, ErrStopped) {
		r.absent(m)
		return nil
	}
	return err
}

func (r *Ref) postBy(m Message, w Worker) error {
	err := r.enqueue(m, w)
	if err != nil {
		err = r.refused(m, w, err)
	}
	return err
}

// refused deals with a message that enqueue did not take: it may wait for
// room, where the sender may wait.
func (r *Ref) refused(m Message, w Worker, err error) error {
	if w == nil && r.waits(err) {
		err = r.awaitRoom(context.Background(), 0, m)
	}
	if errors.Is(err, ErrStopped) {
		r.absent(m)
		return nil
	}
	return err
}

// Ask sends a message and waits for its answer. An error that the handler gave
// with Fail or returned comes back as it is; a panic as *PanicError. When ctx
// has no deadline, Config.AskTimeout is one. At the deadline the error wraps
// ErrTimeout; when ctx is cancelled it wraps context.Canceled. When it ends
// while the ask waits for room in a mailbox of Policy Block, the error wraps
// ErrMailboxFull: the message was not taken.
//
// Inside a handler use Context.PipeTo around it, or the worker stands still.
func (r *Ref) Ask(ctx context.Context, msg any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, notSent(r.Path(), err)
	}
	limit := r.sys.askLimit(ctx)
	p := r.sys.borrow(limit > 0 && ctx.Done() == nil)
	m := Message{Payload: msg, Reply: p}
	if err := r.enqueue(m, p.sentBy()); err != nil {
		if limit, err = r.askRefused(ctx, limit, m, err); err != nil {
			if p.leaveOpen(promiseAnswered) {
				r.sys.recycle(p)
			}
			return nil, err
		}
		p.leaveClock() // part of the limit may be over
	}
	v, err := p.await(ctx, limit)
	if err == nil {
		r.sys.recycle(p)
		return v, nil
	}
	if w, ok := asWait(err); ok {
		return nil, w.failed("ask " + r.Path())
	}
	r.sys.recycle(p)
	return nil, err
}

// askRefused is refused for an ask, which waits for room no longer than for its
// answer. It returns how long the answer may still take.
func (r *Ref) askRefused(ctx context.Context, limit time.Duration, m Message, err error) (time.Duration, error) {
	if r.waits(err) {
		begin := r.sys.Now()
		err = r.awaitRoom(ctx, limit, m)
		if limit > 0 {
			limit = max(limit-r.sys.Now().Sub(begin), 1)
		}
	}
	if errors.Is(err, ErrStopped) {
		r.absent(m)
		return limit, nil
	}
	return limit, err
}

// TellSystem queues a message for the actor's SystemReceiver, ahead of user
// messages. It is never refused. It is dropped when the actor has stopped or
// has no SystemReceiver.
func (r *Ref) TellSystem(msg any) {
	if !r.signal(signal{kind: sigUser, payload: msg}) {
		r.sys.log.Debug("system message dropped: the actor has stopped", "actor", r.Name())
	}
}

// Stop asks the actor to stop. It takes effect ahead of user messages, after
// the message in progress. System.AwaitStop waits for the end of it.
func (r *Ref) Stop() { r.signal(signal{kind: sigStop}) }

// Stopped says that the actor no longer takes messages: it has begun to stop,
// or has retired.
func (r *Ref) Stopped() bool { return r.is(ending) }

// MailboxLen returns how many user messages wait, without the one in progress
// and without stashed ones. A message that finds an actor with an unbounded mailbox
// at rest counts as in progress from then on.
func (r *Ref) MailboxLen() int {
	r.mu.Lock()
	n := len(r.queue) + r.left() + r.laneLen()
	r.mu.Unlock()
	return n
}

// MailboxCap returns how many user messages may wait; 0 when there is no limit.
func (r *Ref) MailboxCap() int {
	if c := r.capacity; c >= 0 {
		return int(c)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.laneOf(); l != nil {
		return l.q.Cap()
	}
	return 0
}

// Load is a measure of how busy the actor is: MailboxLen, and one more while
// it handles a message or is about to.
func (r *Ref) Load() int {
	r.mu.Lock()
	n := len(r.queue) + r.left() + r.laneLen()
	if !r.is(resting) {
		n++
	}
	r.mu.Unlock()
	return n
}
