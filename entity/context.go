package entity

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist"
)

// Context is what a handler knows and may do beside changing the state. It is
// valid only during the call it is handed to; what sends, starts or sets something
// panics behind it. What it is asked to send or start happens after the turn's
// commit, in order, and not at all when the handler fails.
type Context struct {
	a         *activation
	actor     *actor.Context
	message   *Message
	effects   []effect
	parcels   []*parcel // to be sent once
	reminders *setReminders
	raised    []raised // events, of an event-sourced entity
	state     any      // what they are applied to
	err       error    // the first request that could not be taken
	ended     atomic.Bool
}

// effect is something to be done once a turn is durable.
type effect func(ctx *actor.Context, life uint64)

// Pod returns the name of the entity's pod.
func (c *Context) Pod() string { return c.a.key.Pod }

// Name returns the entity's name.
func (c *Context) Name() string { return c.a.key.Name }

// Life returns the entity's life, or 0 while the commit that creates the
// entity is not durable yet.
func (c *Context) Life() uint64 { return c.a.head.life }

// Revision returns the revision that the handler's state has; 0 in the turn
// that creates the entity.
func (c *Context) Revision() uint64 { return c.a.head.revision }

// Now returns the system's time.
func (c *Context) Now() time.Time { return c.actor.Now() }

// Logger returns a logger that names the entity.
func (c *Context) Logger() *slog.Logger {
	return c.actor.Logger().With("pod", c.a.key.Pod, "entity", c.a.key.Name)
}

// PausePassivation keeps the entity in memory though it is idle or memory is
// short, until ResumePassivation or the end of the process.
func (c *Context) PausePassivation() { c.stays(true) }

// ResumePassivation lets the entity leave memory again.
func (c *Context) ResumePassivation() { c.stays(false) }

func (c *Context) stays(stay bool) {
	c.must("keep it in memory, or no longer")
	a := c.a
	c.effects = append(c.effects, func(*actor.Context, uint64) { a.host.SetStays(stay) })
}

// Send sends a message to an entity, at most once: it may be lost in a crash
// between the commit and its delivery, and becomes a dead letter when the
// receiver's mailbox is full or refuses it. What an entity sends itself reaches
// the same life only. The turn fails when the pod or the message is unknown.
func (c *Context) Send(pod, name string, msg any) { c.send(0, pod, name, msg) }

// SendAfter sends a message like Send, once d has passed. What is pending when
// the process ends is lost; Remind keeps it.
func (c *Context) SendAfter(d time.Duration, pod, name string, msg any) { c.send(d, pod, name, msg) }

func (c *Context) send(d time.Duration, pod, name string, msg any) {
	if !c.changes("send") {
		return
	}
	if err := CheckName(name); err != nil {
		c.fail(fmt.Errorf("send to pod %s: %w", pod, err))
		return
	}
	m, err := c.a.host.Wrap(pod, msg)
	if err != nil {
		c.fail(fmt.Errorf("send to %s/%s: %w", pod, name, err))
		return
	}
	to, a := persist.Key{Pod: pod, Name: name}, c.a
	c.effects = append(c.effects, func(_ *actor.Context, life uint64) {
		if to == a.key {
			m.Life, m.NoCreate = life, true // to this life, not to one that follows
		}
		if d <= 0 {
			a.post(to, m)
			return
		}
		a.host.System().After(d, func() { a.post(to, m) })
	})
}

// PipeTo runs f off the workers after the turn's commit and sends what it
// returns to this entity, as a message of its Go type, in the same life only. An
// error comes back as a PipeFailed, if the type handles that, and is logged
// otherwise. f's ctx ends when the entity leaves memory.
func (c *Context) PipeTo(f func(ctx context.Context) (any, error)) {
	if !c.changes("start work") {
		return
	}
	a := c.a
	c.effects = append(c.effects, func(ctx *actor.Context, life uint64) { a.pipe(ctx, f, life) })
}

// PipeFailed tells a handler that work started by PipeTo failed.
type PipeFailed struct {
	Error string `json:"error"`
}

// must panics behind the call, where what is asked for would be lost in silence.
func (c *Context) must(what string) {
	if c.ended.Load() {
		panic(fmt.Sprintf("entity: the Context of %s was used to %s behind the call that it belongs to, where nothing would come of it; have PipeTo's function return a message instead", c.a.key, what))
	}
}

func (c *Context) changes(what string) bool {
	c.must(what)
	if c.message.handler.kind == KindQuery {
		c.fail(fmt.Errorf("a query only reads and cannot %s; use Reply", what))
		return false
	}
	return true
}

func (c *Context) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}
