package pod

import (
	"cmp"
	"fmt"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
)

// PodManagerActor is the parent of a pod's entities. It makes them on
// CreateChild and sends idle ones out of memory.
type PodManagerActor struct {
	pod   *Pod
	sweep actor.Timer
}

// CreateChild asks a PodManagerActor to give an entity its message, which
// creates the entity if it is new and the message may do that. The answer is
// the entity's own.
type CreateChild struct {
	Name    string
	Message any
}

type sweepNow struct{}

// PreStart begins to look for idle entities.
func (m *PodManagerActor) PreStart(ctx *actor.Context) error {
	if every := m.pod.pods.cfg.IdleAfter; every > 0 {
		m.sweep = ctx.ScheduleEvery(every, ctx.Self(), sweepNow{})
	}
	return nil
}

// PostStop ends the look-out.
func (m *PodManagerActor) PostStop(*actor.Context) {
	if m.sweep != nil {
		m.sweep.Stop()
	}
}

// Receive handles CreateChild, and actor.Subscribe and actor.Unsubscribe of
// actors that want to hear of CreatedChild.
func (m *PodManagerActor) Receive(ctx *actor.Context, msg any) error {
	switch msg := msg.(type) {
	case CreateChild:
		sender, reply := ctx.Sender(), ctx.Defer()
		if err := m.pod.post(msg.Name, actor.Message{Payload: msg.Message, Sender: sender, Reply: reply}); err != nil {
			if reply != nil {
				reply.Fail(err)
				return nil
			}
			m.pod.pods.undeliverable(m.pod.name+"/"+msg.Name, actor.Message{Payload: msg.Message, Sender: sender}, err)
		}
	case actor.Subscribe:
		m.pod.subscribe(cmp.Or(msg.Ref, ctx.Sender()), true)
		ctx.Respond(nil)
	case actor.Unsubscribe:
		m.pod.subscribe(cmp.Or(msg.Ref, ctx.Sender()), false)
		ctx.Respond(nil)
	case sweepNow:
		m.pod.sweepIdle()
	default:
		ctx.Fail(fmt.Errorf("pod %s: its manager does not know %T; send CreateChild, or send to an entity", m.pod.name, msg))
	}
	return nil
}

// sweepIdle sends out the entities that handled nothing since the last sweep,
// as a clock's hand does: no entity keeps a timer or reads the time.
func (p *Pod) sweepIdle() {
	since := p.swept
	p.swept = p.pods.residents.uses.Load()
	if !p.lets() {
		return
	}
	for _, s := range p.resident(func(s *slot) bool { return s.used.Load() <= since && !s.Stays() }) {
		s.ref.TellSystem(entity.Sweep())
	}
}
