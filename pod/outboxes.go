package pod

import (
	"context"
	"errors"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
)

const (
	// outboxPage is how many rows are read, and how many of their entities
	// woken, at a time.
	outboxPage = 256
	// wakePause is the wait before an entity that owes messages is woken, and
	// before waking is tried again.
	wakePause = time.Second
)

// resumeOutboxes wakes the entities that have messages of SendOnce to deliver,
// in the background.
func (p *Pod) resumeOutboxes() {
	if p.spec.Load() == nil || mutant.On(mutant.OutboxesNotWoken) {
		return
	}
	p.pods.sys.Go(func() {
		after := persist.Row{Kind: entity.OutboxRows, Key: persist.Key{Pod: p.name}}
		for p.pods.work.Err() == nil {
			more, err := p.wakeOwing(p.pods.work, &after)
			if err != nil {
				if p.pods.work.Err() != nil {
					return // the pods are closing
				}
				p.pods.sys.Logger().Warn("entities with messages to deliver could not be woken yet; trying again", "pod", p.name, "error", err)
				if p.pods.sys.Sleep(p.pods.work, wakePause) != nil {
					return
				}
				continue
			}
			if !more {
				return
			}
		}
	})
}

// wakeOwing wakes the entities of one page of outbox rows behind a row, which it
// moves on, and reports whether there may be more.
func (p *Pod) wakeOwing(ctx context.Context, after *persist.Row) (more bool, err error) {
	rows, err := p.store().Rows(ctx, entity.OutboxRows, after, outboxPage)
	if err != nil {
		return false, err
	}
	asked := []*actor.Promise{}
	last := *after
	more = len(rows) == outboxPage
	for _, r := range rows {
		if r.Key.Pod != p.name {
			more = false
			break
		}
		if r.Key != last.Key {
			asked = append(asked, p.touch(r.Key.Name))
		}
		last = r
	}
	for _, reply := range asked {
		_, err := reply.Wait(ctx)
		if err != nil && !errors.Is(err, entity.ErrQuarantined) {
			return false, err
		}
	}
	*after = last
	return more, nil
}

func (p *Pod) touch(name string) *actor.Promise {
	reply := p.pods.sys.NewPromise()
	if err := p.post(name, actor.Message{Payload: entity.Touch(), Reply: reply}); err != nil {
		reply.Fail(err)
	}
	return reply
}

// wakeSoon brings an entity back that ended with messages to deliver, or with
// reminders that nobody has been told of.
func (p *Pod) wakeSoon(name string) {
	if p.pods.closing.Load() || mutant.On(mutant.OwesForgotten) {
		return
	}
	p.pods.sys.After(wakePause, func() {
		if p.pods.closing.Load() || p.dropping.Load() {
			return
		}
		reply := p.pods.sys.OnReply(func(_ any, err error) {
			if err != nil && !errors.Is(err, entity.ErrQuarantined) {
				p.wakeSoon(name) // the store may be away
			}
		})
		if err := p.post(name, actor.Message{Payload: entity.Touch(), Reply: reply}); err != nil {
			reply.Fail(err)
		}
	})
}
