package actortest

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// Patience is how long a Probe's expectations wait, on the system's clock.
const Patience = 5 * time.Second

// Probe is an actor that keeps what it gets, for a test to look at. Its
// methods may be called from the test's goroutine, and fail the test.
type Probe struct {
	tb     testing.TB
	ref    *actor.Ref
	waiter *actor.Waiter

	mu   sync.Mutex
	came []actor.Message // not taken by an expectation yet
}

// do is a message that the probe acts on.
type do func(ctx *actor.Context)

// NewProbe starts a probe of that name under /user; "" makes a name up.
func NewProbe(tb testing.TB, sys *actor.System, name string) *Probe {
	tb.Helper()
	p := &Probe{tb: tb, waiter: sys.NewWaiter()}
	ref, err := sys.Spawn(name, actor.PropsFunc(p.receive))
	if err != nil {
		tb.Fatalf("probe: %v", err)
	}
	p.ref = ref
	return p
}

func (p *Probe) receive(ctx *actor.Context, msg any) error {
	if f, ok := msg.(do); ok {
		f(ctx)
		return nil
	}
	m := ctx.Message()
	ctx.Defer() // the test may answer
	p.mu.Lock()
	p.came = append(p.came, m)
	p.mu.Unlock()
	p.waiter.Wake()
	return nil
}

// Ref is the probe's actor.
func (p *Probe) Ref() *actor.Ref { return p.ref }

// Do runs f inside the probe's actor and returns when it has.
func (p *Probe) Do(f func(ctx *actor.Context)) {
	p.tb.Helper()
	ctx, cancel := p.ref.System().WithTimeout(context.Background(), Patience)
	defer cancel()
	_, err := p.ref.Ask(ctx, do(func(c *actor.Context) { f(c); c.Respond(nil) }))
	if err != nil {
		p.tb.Fatalf("probe: %v", err)
	}
}

// Watch has the probe get Terminated for r.
func (p *Probe) Watch(r *actor.Ref) {
	p.tb.Helper()
	p.Do(func(ctx *actor.Context) { ctx.Watch(r) })
}

// Send sends a message from the probe, so that answers come back to it.
func (p *Probe) Send(to *actor.Ref, msg any) {
	p.tb.Helper()
	if err := to.TellFrom(msg, p.ref); err != nil {
		p.tb.Fatalf("probe: telling %v %T: %v", to, msg, err)
	}
}

// NextMessage takes the next message, waiting for it up to Patience.
func (p *Probe) NextMessage() actor.Message {
	p.tb.Helper()
	m, ok := p.next(Patience)
	if !ok {
		p.tb.Fatalf("probe %v: no message came within %v", p.ref, Patience)
	}
	return m
}

// Next is NextMessage's payload.
func (p *Probe) Next() any {
	p.tb.Helper()
	return p.NextMessage().Payload
}

// Expect takes the next message and fails unless it is deeply equal to want.
func (p *Probe) Expect(want any) {
	p.tb.Helper()
	if got := p.Next(); !reflect.DeepEqual(got, want) {
		p.tb.Fatalf("probe %v: got %T %v, want %T %v", p.ref, got, got, want, want)
	}
}

// ExpectTerminated takes the next message and fails unless it says that r has
// stopped. It returns the reason.
func (p *Probe) ExpectTerminated(r *actor.Ref) error {
	p.tb.Helper()
	got := p.Next()
	if t, ok := got.(actor.Terminated); ok && t.Ref == r {
		return t.Reason
	}
	p.tb.Fatalf("probe %v: got %T %v, want Terminated of %v", p.ref, got, got, r)
	return nil
}

// ExpectNone fails when a message comes within d.
func (p *Probe) ExpectNone(d time.Duration) {
	p.tb.Helper()
	if m, ok := p.next(d); ok {
		p.tb.Fatalf("probe %v: got %T %v, want nothing", p.ref, m.Payload, m.Payload)
	}
}

// Len is how many messages have come and not been taken.
func (p *Probe) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.came)
}

// Payloads takes all that has come, without waiting.
func (p *Probe) Payloads() []any {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]any, len(p.came))
	for i, m := range p.came {
		all[i] = m.Payload
	}
	p.came = nil
	return all
}

func (p *Probe) next(d time.Duration) (actor.Message, bool) {
	ctx, cancel := p.ref.System().WithTimeout(context.Background(), d)
	defer cancel()
	for {
		p.mu.Lock()
		if len(p.came) > 0 {
			m := p.came[0]
			p.came = p.came[1:]
			p.mu.Unlock()
			return m, true
		}
		p.mu.Unlock()
		switch err := p.waiter.Wait(ctx); {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrStuck):
			return actor.Message{}, false
		case err != nil:
			p.tb.Fatalf("probe %v: %v", p.ref, err)
		}
	}
}
