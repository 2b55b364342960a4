package patterns

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/twinsrv/twinsrv/actor"
)

// PubSubConfig tunes a PubSub. The zero value works.
type PubSubConfig struct {
	// Backlog is how many messages a subscriber may have waiting; beyond that it
	// misses what is published. 0 means 10,000; below zero there is no bound but
	// that of its mailbox.
	Backlog int
}

// Subscribe is a message to a PubSub: it has an actor told the messages of a
// type from now on, until it stops or Unsubscribe comes. Subscribing twice is
// subscribing once. An ask is answered with nil when the subscription holds.
type Subscribe struct {
	// Type is that of the messages; an interface stands for the types that
	// implement it. Nil stands for every message.
	Type reflect.Type
	// Ref is who subscribes; nil is the sender.
	Ref *actor.Ref
}

// Unsubscribe undoes Subscribe for the same type; without a Type, for all. An ask
// is answered with nil.
type Unsubscribe struct {
	Type reflect.Type
	Ref  *actor.Ref // nil: the sender
}

// SubscribeTo is a Subscribe of the sender to messages of type T.
func SubscribeTo[T any]() Subscribe { return Subscribe{Type: reflect.TypeFor[T]()} }

// UnsubscribeFrom is an Unsubscribe of the sender from messages of type T.
func UnsubscribeFrom[T any]() Unsubscribe { return Unsubscribe{Type: reflect.TypeFor[T]()} }

// Published is the answer to an ask of a PubSub: what became of the message.
type Published struct {
	Told   int // subscribers whose mailbox has it
	Missed int // subscribers that had too many waiting
}

// PubSub returns the props of an actor that tells each message to those who
// have subscribed to its type (Subscribe), with the sender that it came with.
// From one sender to one subscriber order is kept.
//
// It waits for nobody: a subscriber whose mailbox is full, or beyond the
// Backlog, misses the message, which becomes a dead letter for each that does.
// Subscribers are watched, and forgotten when they stop; a restart, which only
// the failure of a sibling or the parent can bring, forgets all. A message that
// nobody has subscribed to is dropped; an ask says how many got it.
//
// All subscribers get the same value, so they must not change what it points to.
func PubSub(cfg PubSubConfig) actor.Props {
	if cfg.Backlog == 0 {
		cfg.Backlog = 10_000
	}
	return actor.PropsOf(func() actor.Actor {
		return &pubSub{backlog: cfg.Backlog, audience: make(map[reflect.Type][]*actor.Ref)}
	})
}

type pubSub struct {
	backlog     int
	subscribers []*subscriber                 // in the order in which they came
	audience    map[reflect.Type][]*actor.Ref // of messages; made anew after each change
}

type subscriber struct {
	ref *actor.Ref
	to  []reflect.Type
}

// everything is the type that all messages are of.
func everything() reflect.Type { return reflect.TypeFor[any]() }

func (p *pubSub) Receive(ctx *actor.Context, msg any) error {
	switch m := msg.(type) {
	case Subscribe:
		p.change(ctx, m.Ref, m.Type, p.subscribe)
	case Unsubscribe:
		p.change(ctx, m.Ref, m.Type, p.unsubscribe)
	case actor.Terminated:
		p.forget(m.Ref)
	default:
		p.publish(ctx, msg)
	}
	return nil
}

func (p *pubSub) change(ctx *actor.Context, who *actor.Ref, to reflect.Type, how func(*actor.Context, *actor.Ref, reflect.Type)) {
	if who == nil {
		who = ctx.Sender()
	}
	if who == nil {
		refuse(ctx.Self(), take(ctx), fmt.Errorf("%w: who subscribes must be the sender, or named in Ref", actor.ErrInvalid))
		return
	}
	if who == ctx.Self() { // each message would go round for ever
		refuse(who, take(ctx), fmt.Errorf("%w: a PubSub cannot subscribe to itself", actor.ErrInvalid))
		return
	}
	how(ctx, who, to)
	clear(p.audience)
	if ctx.Message().Reply != nil {
		ctx.Respond(nil)
	}
}

func (p *pubSub) find(who *actor.Ref) int {
	return slices.IndexFunc(p.subscribers, func(s *subscriber) bool { return s.ref == who })
}

func (p *pubSub) subscribe(ctx *actor.Context, who *actor.Ref, to reflect.Type) {
	if to == nil {
		to = everything()
	}
	at := p.find(who)
	if at < 0 {
		p.subscribers = append(p.subscribers, &subscriber{ref: who})
		at = len(p.subscribers) - 1
		ctx.Watch(who)
	}
	if s := p.subscribers[at]; !slices.Contains(s.to, to) {
		s.to = append(s.to, to)
	}
}

func (p *pubSub) unsubscribe(ctx *actor.Context, who *actor.Ref, from reflect.Type) {
	at := p.find(who)
	if at < 0 {
		return
	}
	s := p.subscribers[at]
	s.to = slices.DeleteFunc(s.to, func(t reflect.Type) bool { return from == nil || t == from })
	if len(s.to) == 0 {
		ctx.Unwatch(who)
		p.forget(who)
	}
}

func (p *pubSub) forget(who *actor.Ref) {
	p.subscribers = slices.DeleteFunc(p.subscribers, func(s *subscriber) bool { return s.ref == who })
	clear(p.audience)
}

func (p *pubSub) publish(ctx *actor.Context, msg any) {
	m := ctx.Message()
	var done Published
	for _, to := range p.audienceOf(reflect.TypeOf(msg)) {
		told := actor.Message{Payload: msg, Sender: m.Sender}
		err := p.tell(to, told)
		if err == nil {
			done.Told++
			continue
		}
		if !errors.Is(err, actor.ErrStopped) { // else its Terminated is coming
			done.Missed++
		}
		refuse(to, told, err)
	}
	if m.Reply != nil {
		ctx.Respond(done)
	}
}

func (p *pubSub) tell(to *actor.Ref, m actor.Message) error {
	if p.backlog > 0 && to.MailboxLen() >= p.backlog {
		return &actor.FullError{Ref: to, Capacity: p.backlog}
	}
	return to.TryPost(m)
}

// audienceOf returns who is told messages of a type; nil is that of nil.
func (p *pubSub) audienceOf(t reflect.Type) []*actor.Ref {
	refs, known := p.audience[t]
	if known {
		return refs
	}
	for _, s := range p.subscribers {
		if slices.ContainsFunc(s.to, func(to reflect.Type) bool { return matches(t, to) }) {
			refs = append(refs, s.ref)
		}
	}
	p.audience[t] = refs
	return refs
}

func matches(t, to reflect.Type) bool {
	if t == nil {
		return to == everything()
	}
	return t == to || to.Kind() == reflect.Interface && t.Implements(to)
}
