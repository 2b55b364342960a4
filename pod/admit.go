package pod

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// admitWait is how long Admit waits for an entity that has something else to do.
const admitWait = time.Second

// Admit says why a message to a name would be refused before its handler begins,
// with the error that whoever sends it would get; nil if it would be handled as
// things are, or if that is not known. It is for those who promise an answer
// before there is one. It sends nothing, creates nothing and wakes nobody.
//
// It looks at what Post looks at, the creation policy, the message's life and its
// conditions, and of documents also at what the message would make of the state
// (entity.Spec.Admit). A message that the entity has
// answered already under its id is not refused, another one with that id is.
//
// It looks at what is acknowledged. An entity in memory may have messages before
// it that change the verdict: before one of those is refused it is asked itself,
// behind all that waits, for a second at most. What comes between this call and
// the message is not foreseen.
func (p *Pod) Admit(ctx context.Context, name string, msg any) error {
	if p.pods.closing.Load() {
		return fmt.Errorf("pod %s: %w", p.name, ErrStopping)
	}
	m, err := p.bind(name, msg)
	if err != nil {
		return err
	}
	if p.dropping.Load() {
		return p.isDropped()
	}
	ended := p.slots.ended.Load()
	refused := p.judge(ctx, name, m)
	if refused == nil || ctx.Err() != nil {
		return refused
	}
	s := p.slots.get(name)
	switch {
	case s == nil && p.slots.ended.Load() == ended:
		return refused
	case s == nil || s.ref.Stopped(): // it was in memory, and may have had messages before this one
		return p.judge(ctx, name, m)
	}
	switch err := p.askToAdmit(ctx, s, m); {
	case errors.Is(err, actor.ErrStopped): // it has left meanwhile
		return p.judge(ctx, name, m)
	case errors.Is(err, actor.ErrTimeout) && ctx.Err() == nil:
		return nil
	default:
		return err
	}
}

// judge says why an entity as it is acknowledged would refuse a message, or nil.
func (p *Pod) judge(ctx context.Context, name string, m *entity.Message) error {
	spec, err := p.writable()
	if err != nil {
		return err
	}
	key, r := persist.Key{Pod: p.name, Name: name}, &snapshot.Record{}
	switch v, err := p.Get(ctx, name); {
	case err == nil:
		r = &v.record
	case errors.Is(err, entity.ErrQuarantined) && m.Frees():
		return nil
	case !errors.Is(err, entity.ErrNotFound):
		return err
	}
	err = spec.Admit(ctx, p.store(), key, r, m, p.pods.cfg.MaxState, p.pods.sys.Now())
	if errors.Is(err, snapshot.ErrCorrupt) { // what it keeps beside its state
		err = fmt.Errorf("%w: %w", entity.ErrQuarantined, err)
	}
	return err
}

func (p *Pod) askToAdmit(ctx context.Context, s *slot, m *entity.Message) error {
	ctx, cancel := p.pods.sys.WithTimeout(ctx, admitWait)
	defer cancel()
	reply := p.pods.sys.NewPromise()
	if err := s.ref.TryPost(actor.Message{Payload: entity.Admit(m), Reply: reply}); err != nil {
		return fmt.Errorf("%s/%s: %w", p.name, s.name, err)
	}
	_, err := reply.Wait(ctx)
	return err
}
