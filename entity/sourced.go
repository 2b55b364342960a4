package entity

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/snapshot"
)

// Sourced describes entities whose truth is their journal: commands decide
// which events happen, and events make the state. A state is the fold of its
// events; snapshots only make recovery short, and are made again when they are
// lost. Commands and events are durable as those of a Type with Sync durability.
//
// Its fields are read when a pod of it starts and must not change afterwards.
type Sourced[S any] struct {
	// Name is the name of the type's pod.
	Name string
	// New supplies the state before the first event. It is called at every
	// recovery, so it must give the same state for a name each time; nil gives
	// the zero S.
	New func(name string) S
	// Commands are the messages of the type. Their handlers get a copy of the
	// state, which they change through Context.Raise alone; a handler that
	// changes the copy itself fails.
	Commands Handlers[S]
	// Events are what commands may raise. An event's Go type belongs to one.
	Events Events[S]
	// Create says which commands create an entity: with the first events that
	// they raise. The zero value lets all but queries create one of any name.
	Create Creation
	// Index are the paths that queries find entities by without looking at all,
	// such as "state.floor"; see pod.Query.
	Index []string
	// SnapshotEvery is after how many events a snapshot is saved with the next
	// one. 0 means 100.
	SnapshotEvery int
	// SnapshotAfter is how old the last snapshot may be when the next event
	// comes, before one is saved with it. 0 sets no bound. A snapshot is saved
	// in any case when the entity leaves memory.
	SnapshotAfter time.Duration
	// Version is the version of S, and of what events make of it: raise it when S or
	// an Apply changes. A snapshot of an older version is then made again from the
	// events, unless Upgrades carry it forward.
	Version uint32
	// Upgrades carry snapshots of older versions forward, if there is one for each
	// step; nil is one that has nothing to do.
	Upgrades snapshot.Upgrades
	// Repeats says how long answers to messages with ids are remembered.
	Repeats Window
	// Eager recovers every entity when the pod starts and keeps it active.
	Eager bool
}

// Events are a Sourced type's events by the names that stand in the journal.
type Events[S any] map[string]Event[S]

// Event is one kind of event of a Sourced type. Make one with Apply.
type Event[S any] struct {
	version  uint32
	upgrades snapshot.Upgrades
	typ      reflect.Type
	apply    func(s *S, e any)
}

// Apply makes an event whose data is an E. f changes the state by the two alone:
// it must do the same at every recovery. One that panics fails the command, and
// at a recovery quarantines the entity.
func Apply[S, E any](f func(s *S, e E)) Event[S] {
	if f == nil {
		return Event[S]{} // which no type takes
	}
	return Event[S]{typ: reflect.TypeFor[E](), apply: func(s *S, e any) { f(s, e.(E)) }}
}

// At returns the event with the version of E, and upgrades that carry events of
// older versions forward. Fields that were only added or removed need none.
func (e Event[S]) At(version uint32, upgrades snapshot.Upgrades) Event[S] {
	e.version, e.upgrades = version, upgrades
	return e
}

// event is an Event without its state's type.
type event struct {
	name     string
	version  uint32
	upgrades snapshot.Upgrades
	typ      reflect.Type
	apply    func(state, e any)
}

// sourcing is what a Spec has of a Sourced type alone.
type sourcing struct {
	start  func(name string) any // a *S
	events map[string]*event
	byType map[reflect.Type]*event
	every  uint64
	after  time.Duration
}

func (t Sourced[S]) state() (zero S) { return zero }

// Spec checks and compiles the type.
func (t Sourced[S]) Spec() (*Spec, error) {
	spec := &Spec{
		Name: t.Name, Kind: KindTyped, Version: t.Version, Eager: t.Eager,
		State:    reflect.TypeFor[S](),
		codec:    snapshot.Msgpack(),
		upgrades: t.Upgrades,
		repeats:  t.Repeats.withDefaults(),
		index:    slices.Clone(t.Index),
	}
	every := t.SnapshotEvery
	if every <= 0 {
		every = 100
	}
	spec.sourcing = &sourcing{
		events: make(map[string]*event, len(t.Events)), byType: make(map[reflect.Type]*event, len(t.Events)),
		every: uint64(every), after: t.SnapshotAfter,
		start: func(name string) any {
			s := new(S)
			if t.New != nil {
				*s = t.New(name)
			}
			return s
		},
	}
	for _, name := range slices.Sorted(maps.Keys(t.Events)) {
		e := t.Events[name]
		if e.apply == nil {
			return nil, fmt.Errorf("%w: %s: event %q is empty; make it with Apply", ErrDefinition, t.Name, name)
		}
		erased := &event{
			name: name, version: e.version, upgrades: e.upgrades, typ: e.typ,
			apply: func(state, ev any) { e.apply(state.(*S), ev) },
		}
		if err := spec.addEvent(erased); err != nil {
			return nil, err
		}
	}
	return compile[S](spec, nil, t.Commands, t.Create)
}

func (s *Spec) addEvent(e *event) error {
	fault := nameFault(e.name)
	if e.name == deleted {
		fault = "must not be that of the end of a life"
	}
	if fault != "" {
		return fmt.Errorf("%w: %s: %q cannot be the name of an event: it %s", ErrDefinition, s.Name, e.name, fault)
	}
	if other, is := s.sourcing.byType[e.typ]; is {
		return fmt.Errorf("%w: %s: events %q and %q have the same Go type %s; give one of them a type of its own",
			ErrDefinition, s.Name, other.name, e.name, e.typ)
	}
	if err := s.codec.Check(e.typ); err != nil {
		return fmt.Errorf("%w: %s: event %q: %w", ErrDefinition, s.Name, e.name, err)
	}
	if err := e.upgrades.Check(e.version); err != nil {
		return fmt.Errorf("%w: %s: event %q: %w", ErrDefinition, s.Name, e.name, err)
	}
	s.sourcing.events[e.name], s.sourcing.byType[e.typ] = e, e
	return nil
}

// IsSourced reports whether the entities' truth is the journal.
func (s *Spec) IsSourced() bool { return s.sourcing != nil }

// Raise makes an event of a Sourced type happen, in the turn: the handler's
// state has it applied at once, and it becomes durable with the turn. The turn
// fails when the type has no event of e's Go type, or the handler is a query.
func (c *Context) Raise(e any) {
	if !c.changes("raise an event") {
		return
	}
	spec := c.a.spec
	if spec.sourcing == nil {
		c.fail(fmt.Errorf("raise %T: the entities of pod %s are not event-sourced; change the state itself", e, spec.Name))
		return
	}
	def, ok := spec.sourcing.byType[reflect.TypeOf(e)]
	if !ok {
		c.fail(fmt.Errorf("raise %T: pod %s has no event of this Go type", e, spec.Name))
		return
	}
	data, err := spec.codec.Append(nil, e)
	if err != nil {
		c.fail(fmt.Errorf("raise %q: %w", def.name, err))
		return
	}
	if most := c.a.host.MaxState(); len(data) > most {
		c.fail(&tooLarge{size: len(data), most: most})
		return
	}
	r := raised{event: def, data: data}
	if err := r.applyTo(spec.codec, c.state); err != nil {
		c.fail(fmt.Errorf("raise %q: %w", def.name, err))
		return
	}
	c.raised = append(c.raised, r)
}

// raised is an event that happens in a turn, encoded in the handler's call.
type raised struct {
	event *event
	data  []byte
}

// applyTo applies the event as a recovery would: decoded from its encoding.
func (r raised) applyTo(codec snapshot.Codec, state any) error {
	v := reflect.New(r.event.typ)
	if err := codec.Decode(r.data, v.Interface()); err != nil {
		return err
	}
	r.event.apply(state, v.Elem().Interface())
	return nil
}

// errUnraised fails a command that went round its events.
var errUnraised = errors.New("it changed the state itself; a Sourced type changes it by Context.Raise alone")

// decide runs a command of an event-sourced entity: its handler works on a copy
// of the state, and what it raised is applied to the state itself.
func (a *activation) decide(c *Context, h *handler, msg any) (v any, err error) {
	if c.state, err = a.sourcedState(); err != nil {
		return nil, err
	}
	if v, err = h.call(c, c.state, msg); err != nil || c.err != nil {
		return nil, err
	}
	if a.head.revision == 0 {
		a.model.adopt(a.spec.sourcing.start(a.key.Name))
	} else if err = a.model.restore(a.head.enc); err != nil {
		return nil, err
	}
	for _, r := range c.raised {
		if err = r.applyTo(a.spec.codec, a.model.current()); err != nil {
			return nil, fmt.Errorf("event %q: %w", r.event.name, err)
		}
	}
	copied, err := a.spec.codec.Append(nil, c.state)
	if err != nil {
		return nil, fmt.Errorf("the state cannot be encoded: %w", err)
	}
	made, err := a.model.encode()
	if err == nil && !bytes.Equal(copied, made) {
		err = errUnraised
	}
	return v, err
}

// sourcedState returns a copy of the head's state, or a state before the first
// event.
func (a *activation) sourcedState() (any, error) {
	if a.head.revision == 0 {
		return a.spec.sourcing.start(a.key.Name), nil
	}
	s := reflect.New(a.spec.State).Interface()
	if err := a.spec.codec.Decode(a.head.enc, s); err != nil {
		return nil, fmt.Errorf("copy the state: %w", err)
	}
	return s, nil
}
