package pod

import (
	"context"
	"errors"
	"fmt"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
)

// Drop removes a document pod. With cascade it deletes the pod's entities
// first; without, a pod that has any stays as it is and the error wraps
// ErrNotEmpty. While entities are being deleted the pod takes no messages. A
// drop that fails half-way can be repeated.
func (p *Pods) Drop(ctx context.Context, name string, cascade bool) error {
	if err := p.changing.enter(ctx, p.sys); err != nil {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	defer p.changing.leave()
	pod, err := p.Pod(name)
	if err != nil {
		return err
	}
	if pod.def.Load().Type != entity.KindDocument {
		return fmt.Errorf("%w: pod %s is not a document pod; only those can be deleted", ErrReadOnly, name)
	}
	if err := pod.empty(ctx); err != nil && !cascade {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	half := pod.dropping.Swap(true) // by a drop whose outcome is not known
	if err := pod.clear(ctx, cascade); err != nil {
		pod.dropping.Store(half)
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	return p.remove(ctx, pod, half)
}

// remove takes a pod without entities out of the store and the registry. While
// it is not known whether the definition is gone the pod takes no messages; the
// drop can be repeated.
func (p *Pods) remove(ctx context.Context, pod *Pod, half bool) error {
	d := pod.def.Load()
	if _, err := p.commit(context.WithoutCancel(ctx), persist.Unit{
		Key: persist.Key{Pod: definitions, Name: pod.name}, Life: d.record.Life, Expect: d.record.Revision, Delete: true,
		Changes: []persist.Change{{Revision: d.record.Revision + 1, Time: p.sys.Now().UTC(), Type: "deleted"}},
	}); err != nil {
		head, found := p.definitionHead(context.WithoutCancel(ctx), pod.name)
		if !found || head.Revision > 0 {
			pod.dropping.Store(!found && (half || !errors.Is(err, persist.ErrUnavailable)))
			pod.unsure()
			return fmt.Errorf("delete pod %s: %w", pod.name, err)
		}
	}
	p.mu.Lock()
	delete(p.pods, pod.name)
	p.mu.Unlock()
	pod.manager.Stop()
	return p.sys.AwaitStop(ctx, pod.manager)
}

// empty returns an error wrapping ErrNotEmpty when the pod has entities.
func (p *Pod) empty(ctx context.Context) error {
	page, err := p.store().List(ctx, p.name, persist.ListOptions{Limit: 1})
	if err == nil && len(page.Items) > 0 {
		err = fmt.Errorf("%w: it has entities, such as %q", ErrNotEmpty, page.Items[0].Name)
	}
	return err
}

// clear ends everything in the pod: what is in memory without being stored
// (the creation of an entity, say) leaves it, and then the stored entities are
// deleted, a page at a time. Without cascade there must be none.
func (p *Pod) clear(ctx context.Context, cascade bool) error {
	unstored := func(s *slot) bool { v := s.view.Load(); return v == nil || v.Revision == 0 }
	if err := p.passivateAll(ctx, unstored, false); err != nil {
		return err
	}
	for {
		live := p.resident(func(s *slot) bool { return !s.ref.Stopped() })
		page, err := p.store().List(ctx, p.name, persist.ListOptions{})
		switch {
		case err != nil:
			return err
		case len(page.Items) == 0 && len(live) == 0:
			return nil
		case len(page.Items) == 0: // a life may begin behind one that has just ended
			if err := p.passivateAll(ctx, func(*slot) bool { return true }, false); err != nil {
				return err
			}
			continue
		case !cascade:
			return p.empty(ctx)
		}
		if err := p.deleteAll(ctx, page.Items); err != nil {
			return err
		}
	}
}

// deleteAll deletes entities side by side, so that they share commits.
func (p *Pod) deleteAll(ctx context.Context, items []persist.Item) error {
	replies := make([]*actor.Promise, 0, len(items))
	for _, i := range items {
		reply := p.pods.sys.NewPromise()
		if err := p.deliver(i.Name, actor.Message{Payload: entity.Discard(), Reply: reply}, true); err != nil {
			reply.Fail(err)
		}
		replies = append(replies, reply)
	}
	var failed []error
	for _, reply := range replies {
		if _, err := reply.Wait(ctx); err != nil && !errors.Is(err, entity.ErrNotFound) {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return failed[0] // the others are of its kind, or the next try names them
	}
	return nil
}
