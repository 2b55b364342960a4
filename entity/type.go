package entity

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/snapshot"
)

// Type describes entities whose state is an S. Its fields are read when a pod
// of it starts and must not change afterwards.
type Type[S any] struct {
	// Name is the name of the type's pod.
	Name string
	// Init supplies the state of a new entity from its name, before its first
	// message is handled. nil starts with the zero S. It may block (it runs off
	// the workers) but should honour ctx, which ends after InitTimeout or when
	// the entity stops. An error creates nothing.
	Init func(ctx context.Context, name string) (S, error)
	// Handlers are the messages of the type. A message's Go type belongs to one
	// handler.
	Handlers Handlers[S]
	// Create says which messages create an entity. The zero value lets all but
	// queries create one of any name.
	Create Creation
	// Index are the paths that queries find entities by without looking at all,
	// such as "state.floor"; see pod.Query.
	Index []string
	// Durability is Sync unless set.
	Durability Durability
	// Version is the version of S; raise it when Upgrades must change stored
	// states. Fields that were only added or removed need no new version.
	Version uint32
	// Upgrades carry states of older versions forward. Each stands under the
	// version that it starts from, so all are below Version.
	Upgrades snapshot.Upgrades
	// Repeats says how long answers to messages with ids are remembered.
	Repeats Window
	// Eager recovers every entity when the pod starts and keeps it active.
	// Otherwise entities are recovered by their first message.
	Eager bool
	// Supervisor is the strategy for failures of the pod's actors outside
	// handlers, whose failures harm nobody; nil restarts without a budget.
	Supervisor *actor.Strategy
}

// Creation is the policy by which messages create entities.
type Creation struct {
	// By names the messages that create; nil means all but queries, an empty
	// list none.
	By []string
	// Names is a regular expression that the whole name of a new entity must
	// match; empty matches every name.
	Names string
}

// Kind is a Definition that knows its state's type.
type Kind[S any] interface {
	Definition
	state() S
}

// Definition is what a pod is started from: a Type or a Document.
type Definition interface {
	// Spec checks the definition and compiles it. It fails with an error that
	// wraps ErrDefinition and names what is wrong.
	Spec() (*Spec, error)
}

func (t Type[S]) state() (zero S) { return zero }

// Spec checks and compiles the type.
func (t Type[S]) Spec() (*Spec, error) {
	spec := &Spec{
		Name: t.Name, Kind: KindTyped, Durability: t.Durability, Version: t.Version, Eager: t.Eager, Supervisor: t.Supervisor,
		State:    reflect.TypeFor[S](),
		codec:    snapshot.Msgpack(),
		upgrades: t.Upgrades,
		repeats:  t.Repeats.withDefaults(),
		index:    slices.Clone(t.Index),
	}
	return compile(spec, t.Init, t.Handlers, t.Create)
}

// compile fills in what depends on the state's type and checks everything.
func compile[S any](spec *Spec, init func(context.Context, string) (S, error), handlers Handlers[S], create Creation) (*Spec, error) {
	if err := CheckPodName(spec.Name); err != nil {
		return nil, fmt.Errorf("%w: the type's Name: %w", ErrDefinition, err)
	}
	if err := spec.codec.Check(spec.State); err != nil {
		return nil, fmt.Errorf("%w: state of %s: %w", ErrDefinition, spec.Name, err)
	}
	if err := spec.upgrades.Check(spec.Version); err != nil {
		return nil, fmt.Errorf("%w: Upgrades of %s: %w", ErrDefinition, spec.Name, err)
	}
	spec.shower = snapshot.ShowerOf(spec.codec, spec.State)
	spec.newActor = func(a *activation) entityActor { return &EntityActor[S]{activation: a} }
	if init != nil {
		spec.init = func(ctx context.Context, name string) (any, error) {
			s, err := init(ctx, name)
			return &s, err
		}
	}
	erased := make(map[string]*handler, len(handlers))
	for name, h := range handlers {
		e, err := erase(name, h)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", spec.Name, err)
		}
		erased[name] = e
	}
	if err := spec.setHandlers(erased); err != nil {
		return nil, err
	}
	if err := spec.setCreation(create); err != nil {
		return nil, err
	}
	return spec, nil
}
