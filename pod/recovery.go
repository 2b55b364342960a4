package pod

import (
	"context"
	"errors"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
)

// recoverEagerly brings every stored entity of an eager pod into memory, in the
// background and a bounded number at a time. Messages need not wait for it: the
// first one to an entity recovers that entity.
func (p *Pod) recoverEagerly() {
	if spec := p.spec.Load(); spec == nil || !spec.Eager {
		return
	}
	p.pods.sys.Go(func() {
		if err := p.recoverAll(p.pods.work); err != nil && !p.pods.closing.Load() {
			p.pods.sys.Logger().Error("an eager pod was not recovered whole; its entities recover with their first message", "pod", p.name, "error", err)
		}
	})
}

func (p *Pod) recoverAll(ctx context.Context) error {
	for after := ""; !p.pods.closing.Load(); {
		page, err := p.store().List(ctx, p.name, persist.ListOptions{After: after, Limit: p.pods.cfg.RecoverAtOnce})
		items := page.Items
		if err != nil || len(items) == 0 {
			return err
		}
		waiting := make([]*actor.Promise, 0, len(items))
		for _, i := range items {
			reply := p.pods.sys.NewPromise()
			err := p.post(i.Name, actor.Message{Payload: entity.Touch(), Reply: reply})
			switch {
			case errors.Is(err, actor.ErrMailboxFull): // so it is awake
			case err != nil:
				return err
			default:
				waiting = append(waiting, reply)
			}
		}
		for _, reply := range waiting {
			if _, err := reply.Wait(ctx); err != nil && !errors.Is(err, entity.ErrQuarantined) {
				return err
			}
		}
		after = items[len(items)-1].Name
	}
	return nil
}
