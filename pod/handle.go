package pod

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
)

// Handle is a pod whose entities' state is an S. It is safe for concurrent use.
type Handle[S any] struct {
	*Pod
}

// TypedView is an entity's acknowledged state, decoded. The state is the
// caller's own copy.
type TypedView[S any] struct {
	Name     string
	Life     uint64
	Revision uint64
	Changed  time.Time
	State    S
}

// Start runs the pod of a type. The type's name must not be that of a pod of
// another kind. It fails with entity.ErrDefinition when the type cannot be
// used, ErrExists when its name is taken.
func Start[S any](p *Pods, k entity.Kind[S]) (*Handle[S], error) {
	pod, err := p.Start(context.Background(), k)
	if err != nil {
		return nil, err
	}
	return &Handle[S]{Pod: pod}, nil
}

// Find returns the pod of a name whose entities' state is an S: one that Start has
// started, or a server that was given its type. It fails with ErrNoPod, with
// ErrReadOnly where the program does not have the type, and with
// entity.ErrDefinition when the state is another type.
func Find[S any](p *Pods, name string) (*Handle[S], error) {
	pod, err := p.Pod(name)
	if err != nil {
		return nil, err
	}
	spec, err := pod.writable()
	if err != nil {
		return nil, err
	}
	if wanted := reflect.TypeFor[S](); spec.State != wanted {
		return nil, fmt.Errorf("%w: the state of pod %s is %v, not %v", entity.ErrDefinition, name, spec.State, wanted)
	}
	return &Handle[S]{Pod: pod}, nil
}

// Tell puts a message into the entity's mailbox, and creates the entity when it
// is new. It does not wait for the message to be handled; ctx bounds nothing
// yet, since a full mailbox is an error at once.
func (h *Handle[S]) Tell(ctx context.Context, name string, msg any) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s/%s: %w", h.Name(), name, err)
	}
	return h.Pod.Tell(name, msg)
}

// Get returns an entity's acknowledged state, as Pod.Get does.
func (h *Handle[S]) Get(ctx context.Context, name string) (TypedView[S], error) {
	v, err := h.Pod.Get(ctx, name)
	if err != nil {
		return TypedView[S]{}, err
	}
	return h.Typed(v)
}

// Typed decodes the state of a view of this pod, which Query, At or AtTime gave.
func (h *Handle[S]) Typed(v View) (TypedView[S], error) {
	if v.Pod != h.Name() {
		return TypedView[S]{}, fmt.Errorf("%s/%s: the view is not of the pod %s", v.Pod, v.Name, h.Name())
	}
	if v.spec == nil {
		return TypedView[S]{}, fmt.Errorf("%s/%s: the view was read before the pod had its type; read it again", v.Pod, v.Name)
	}
	t := TypedView[S]{Name: v.Name, Life: v.Life, Revision: v.Revision, Changed: v.Changed}
	if err := v.spec.DecodeState(&v.record, &t.State); err != nil {
		return t, fmt.Errorf("%s/%s: %w", v.Pod, v.Name, err)
	}
	return t, nil
}

// Delete ends an entity's life whatever its revision, durably.
func (h *Handle[S]) Delete(ctx context.Context, name string) error {
	_, err := h.Pod.Delete(ctx, name, entity.Condition{})
	return err
}

// List returns a page of the pod's entities by name, and the name behind which
// the next page starts; quarantined entities are left out (Pods.Quarantined
// lists them).
func (h *Handle[S]) List(ctx context.Context, o persist.ListOptions) (views []TypedView[S], next string, err error) {
	page, err := h.Pod.List(ctx, o)
	if err != nil {
		return nil, "", err
	}
	for _, i := range page.Items {
		if i.Err != nil {
			continue
		}
		v, err := h.Typed(i.View)
		if err != nil {
			return nil, "", err
		}
		views = append(views, v)
	}
	return views, page.Next, nil
}
