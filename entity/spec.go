package entity

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/snapshot"
)

// The kinds of definition, as they stand in a pod's description.
const (
	KindTyped    = "typed"
	KindDocument = "document"
)

// Spec is a compiled definition: everything that running entities of it needs,
// without their state's type. It is immutable and safe for concurrent use.
type Spec struct {
	Name       string
	Kind       string // KindTyped or KindDocument
	Durability Durability
	Version    uint32
	Eager      bool
	// Supervisor is the strategy for failures outside handlers; nil is the
	// pods' own.
	Supervisor *actor.Strategy
	State      reflect.Type

	codec    snapshot.Codec
	shower   *snapshot.Shower    // of states
	strict   snapshot.StrictJSON // for bodies from outside
	upgrades snapshot.Upgrades
	init     func(ctx context.Context, name string) (any, error) // nil: the zero state
	newActor func(*activation) entityActor
	handlers map[string]*handler
	byType   map[reflect.Type]*handler
	names    *regexp.Regexp // nil: every name
	creation Creation
	repeats  Window
	index    []string
	sourcing *sourcing // nil: the record is the truth
	schema   *schema   // of a document; nil: every object
}

// Index returns the paths that queries find entities by. They are not checked
// here.
func (s *Spec) Index() []string { return slices.Clone(s.index) }

// HandlerInfo describes one handler of a Spec.
type HandlerInfo struct {
	Name    string
	Kind    HandlerKind
	Message reflect.Type
	Reply   reflect.Type // nil for KindOn, whose answer is an Ack
	Creates bool
}

// Handlers returns the spec's handlers in the order of their names.
func (s *Spec) Handlers() []HandlerInfo {
	out := make([]HandlerInfo, 0, len(s.handlers))
	for _, name := range slices.Sorted(maps.Keys(s.handlers)) {
		h := s.handlers[name]
		out = append(out, HandlerInfo{Name: name, Kind: h.kind, Message: h.message, Reply: h.reply, Creates: h.creates})
	}
	return out
}

// Creation returns the policy by which messages create entities, with By
// filled in.
func (s *Spec) Creation() Creation {
	c := Creation{By: []string{}, Names: s.creation.Names}
	for _, h := range s.Handlers() {
		if h.Creates {
			c.By = append(c.By, h.Name)
		}
	}
	return c
}

func (s *Spec) setHandlers(handlers map[string]*handler) error {
	s.handlers = handlers
	s.byType = make(map[reflect.Type]*handler, len(handlers))
	for _, name := range slices.Sorted(maps.Keys(handlers)) {
		h := handlers[name]
		if fault := nameFault(name); fault != "" {
			return fmt.Errorf("%w: %s: message %q: a message's name %s", ErrDefinition, s.Name, name, fault)
		}
		if other, taken := s.byType[h.message]; taken {
			return fmt.Errorf("%w: %s: messages %q and %q have the same Go type %s; give one of them a type of its own",
				ErrDefinition, s.Name, other.name, name, h.message)
		}
		s.byType[h.message] = h
		if err := s.codec.Check(h.message); err != nil {
			return fmt.Errorf("%w: %s: message %q: %w", ErrDefinition, s.Name, name, err)
		}
		h.detach = snapshot.HoldsReferences(h.message)
		if h.reply == nil {
			continue
		}
		h.detachRe = snapshot.HoldsReferences(h.reply)
		if err := s.codec.Check(h.reply); err != nil { // it may have to be remembered
			return fmt.Errorf("%w: %s: reply to %q: %w", ErrDefinition, s.Name, name, err)
		}
	}
	return nil
}

func (s *Spec) setCreation(c Creation) error {
	s.creation = c
	if c.Names != "" {
		if _, err := regexp.Compile(c.Names); err != nil { // alone, or its brackets could close those around it
			return fmt.Errorf("%w: %s: the pattern for names: %w", ErrDefinition, s.Name, err)
		}
		re, err := regexp.Compile(`\A(?:` + c.Names + `)\z`)
		if err != nil {
			return fmt.Errorf("%w: %s: the pattern for names: %w", ErrDefinition, s.Name, err)
		}
		s.names = re
	}
	for _, h := range s.handlers {
		h.creates = c.By == nil && h.kind != KindQuery
	}
	for _, name := range c.By {
		h, ok := s.handlers[name]
		switch {
		case !ok:
			return fmt.Errorf("%w: %s: creation by %q: there is no such message", ErrDefinition, s.Name, name)
		case h.kind == KindQuery:
			return fmt.Errorf("%w: %s: creation by %q: a query never creates", ErrDefinition, s.Name, name)
		}
		h.creates = true
	}
	return nil
}

// mayCreate says why a message must not create an entity, or nil.
func (s *Spec) mayCreate(name string, m *Message) error {
	switch {
	case m.NoCreate && m.handler.creates:
		return fmt.Errorf("%w: %s/%s, and only one that is there can be changed so", ErrNotFound, s.Name, name)
	case !m.handler.creates:
		return fmt.Errorf("%w: %s/%s, and %q does not create it", ErrNotFound, s.Name, name, m.handler.name)
	case s.names != nil && !s.names.MatchString(name):
		return fmt.Errorf("%w: %s/%s, and it cannot be created: the pod takes names that match %s", ErrNotFound, s.Name, name, s.creation.Names)
	}
	return nil
}
