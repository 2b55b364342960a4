package pod

import (
	"context"
	"errors"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
)

const (
	// The wait before an eager recovery goes on, when something failed, grows
	// from minRecoveryPause to maxRecoveryPause.
	minRecoveryPause = 50 * time.Millisecond
	maxRecoveryPause = 5 * time.Second
)

// recoverEagerly brings every stored entity of an eager pod into memory, in the
// background and a bounded number at a time. Messages need not wait for it: the
// first one to an entity recovers that entity.
func (p *Pod) recoverEagerly() {
	if spec := p.spec.Load(); spec == nil || !spec.Eager {
		return
	}
	p.recovering.Add(1)
	p.pods.sys.Go(func() {
		defer p.recovering.Add(-1)
		p.recoverAll(p.pods.work)
	})
}

// Recovered reports whether the entities of all eager pods that were started have
// come into memory, but for those that are quarantined. What a store that failed
// has kept from it is tried again.
func (p *Pods) Recovered() bool { return len(p.Recovering()) == 0 }

// Recovering returns the names of the eager pods whose entities are still being
// brought into memory, in their order.
func (p *Pods) Recovering() []string {
	var names []string
	for _, pod := range p.All() {
		if pod.recovering.Load() > 0 {
			names = append(names, pod.name)
		}
	}
	return names
}

// recoverAll goes through the store, where it fails again after a pause.
func (p *Pod) recoverAll(ctx context.Context) {
	after, pause := "", minRecoveryPause
	for ctx.Err() == nil {
		last, err := p.recoverSome(ctx, after)
		switch {
		case err == nil && last == "", errors.Is(err, ErrNoPod):
			return
		case err == nil:
			after, pause = last, minRecoveryPause
			continue
		case ctx.Err() != nil:
			return
		}
		p.pods.sys.Logger().Warn("an eager pod is not recovered whole yet; its entities recover with their first message meanwhile", "pod", p.name, "error", err, "next_try_in", pause)
		if p.pods.sys.Sleep(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, maxRecoveryPause)
	}
}

// recoverSome recovers the next entities behind a name and returns the last of
// them; none is left when that is empty.
func (p *Pod) recoverSome(ctx context.Context, after string) (last string, err error) {
	page, err := p.store().List(ctx, p.name, persist.ListOptions{After: after, Limit: p.pods.cfg.RecoverAtOnce})
	if err != nil || len(page.Items) == 0 {
		return "", err
	}
	waiting := make([]*actor.Promise, 0, len(page.Items))
	for _, i := range page.Items {
		reply := p.pods.sys.NewPromise()
		switch err := p.post(i.Name, actor.Message{Payload: entity.Touch(), Reply: reply}); {
		case errors.Is(err, actor.ErrMailboxFull): // so it is awake
		case err != nil:
			return "", err
		default:
			waiting = append(waiting, reply)
		}
	}
	for _, reply := range waiting {
		if _, err := reply.Wait(ctx); err != nil && !errors.Is(err, entity.ErrQuarantined) {
			return "", err
		}
	}
	return page.Items[len(page.Items)-1].Name, nil
}
