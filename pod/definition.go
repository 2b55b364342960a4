package pod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// definitions is the name under which the store keeps the pods' definitions.
// No pod can have it, since a pod's name starts with a letter or a digit.
const definitions = "$pods"

// Definition says what a pod is, as it is declared and described.
type Definition struct {
	// Type is "document", or "typed" for types that a program defines.
	Type string `json:"type"`
	// Durability is "sync", or "async:" and an interval such as "async:500ms".
	Durability string `json:"durability"`
	// Create says which messages create entities, of what name.
	Create CreateDefinition `json:"create"`
}

// CreateDefinition is entity.Creation as JSON. By left out means the type's own
// rule.
type CreateDefinition struct {
	By    []string `json:"by,omitempty"`
	Names string   `json:"names,omitempty"`
}

// stored is a definition with what the store knows of it.
type stored struct {
	Definition
	name   string
	record snapshot.Record
}

func durabilityText(d entity.Durability) string {
	if d.IsAsync() {
		return "async:" + d.Interval().String()
	}
	return "sync"
}

func parseDurability(s string) (entity.Durability, error) {
	if s == "" || s == "sync" {
		return entity.Sync(), nil
	}
	if len(s) > 6 && s[:6] == "async:" {
		if d, err := time.ParseDuration(s[6:]); err == nil && d > 0 && d <= time.Hour {
			return entity.Async(d), nil
		}
	}
	return entity.Durability{}, fmt.Errorf("%w: durability is sync, or async:<interval> with an interval of at most an hour such as async:500ms, not %q", entity.ErrDefinition, s)
}

// spec compiles the definition of a document pod.
func (d *stored) spec() (*entity.Spec, error) {
	if d.Type != entity.KindDocument {
		return nil, fmt.Errorf("%w: pod %s: only pods of the type %q can be declared, not %q", entity.ErrDefinition, d.name, entity.KindDocument, d.Type)
	}
	durability, err := parseDurability(d.Durability)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", d.name, err)
	}
	return entity.Document{
		Name: d.name, Durability: durability,
		Create: entity.Creation{By: d.Create.By, Names: d.Create.Names},
	}.Spec()
}

// described is the definition that a spec amounts to.
func described(spec *entity.Spec) Definition {
	c := spec.Creation()
	return Definition{Type: spec.Kind, Durability: durabilityText(spec.Durability), Create: CreateDefinition{By: c.By, Names: c.Names}}
}

// Definition returns what the pod is.
func (p *Pod) Definition() Definition {
	if spec := p.spec.Load(); spec != nil {
		return described(spec)
	}
	return p.def.Load().Definition
}

// Start runs the pod of a definition that is part of the program, and notes it
// in the store.
func (p *Pods) Start(ctx context.Context, d entity.Definition) (*Pod, error) {
	spec, err := d.Spec()
	if err != nil {
		return nil, err
	}
	if err := p.changing.enter(ctx, p.sys); err != nil {
		return nil, fmt.Errorf("start pod %s: %w", spec.Name, err)
	}
	defer p.changing.leave()
	pod, err := p.Pod(spec.Name)
	if err != nil {
		return p.create(ctx, spec)
	}
	if pod.def.Load().Type != spec.Kind {
		return nil, fmt.Errorf("%w: %s is a %s pod in the store and cannot become a %s one", ErrExists, spec.Name, pod.def.Load().Type, spec.Kind)
	}
	if spec.Kind == entity.KindTyped && pod.spec.Load() != nil {
		return nil, fmt.Errorf("%w: the type %s is started already", ErrExists, spec.Name)
	}
	if err := p.redefine(ctx, pod, spec); err != nil {
		return nil, err
	}
	pod.recoverEagerly()
	return pod, nil
}

// Declare makes a document pod, or changes the one of that name, durably.
func (p *Pods) Declare(ctx context.Context, name string, def Definition) (pod *Pod, created, changed bool, err error) {
	d := stored{Definition: def, name: name}
	spec, err := d.spec()
	if err != nil {
		return nil, false, false, err
	}
	if err := p.changing.enter(ctx, p.sys); err != nil {
		return nil, false, false, fmt.Errorf("declare pod %s: %w", name, err)
	}
	defer p.changing.leave()
	if p.closing.Load() {
		return nil, false, false, fmt.Errorf("declare pod %s: %w", name, ErrStopping)
	}
	pod, err = p.Pod(name)
	if err != nil {
		pod, err = p.create(ctx, spec)
		return pod, err == nil, err == nil, err
	}
	if pod.def.Load().Type != entity.KindDocument {
		return nil, false, false, fmt.Errorf("%w: %s is a typed pod", ErrExists, name)
	}
	before := pod.def.Load().record.Revision
	err = p.redefine(ctx, pod, spec)
	return pod, false, err == nil && pod.def.Load().record.Revision != before, err
}

// create notes a new definition and runs its pod.
func (p *Pods) create(ctx context.Context, spec *entity.Spec) (*Pod, error) {
	d := stored{Definition: described(spec), name: spec.Name}
	if err := p.note(ctx, &d); err != nil {
		return nil, err
	}
	return p.add(d, spec)
}

// redefine gives a pod a new spec. Entities in memory leave it, so that they
// come back with the new one.
func (p *Pods) redefine(ctx context.Context, pod *Pod, spec *entity.Spec) error {
	d := *pod.def.Load()
	next := described(spec)
	if !sameDefinition(d.Definition, next) {
		d.Definition = next
		if err := p.note(ctx, &d); err != nil {
			return err
		}
	} else if pod.spec.Load() != nil {
		return nil
	}
	pod.def.Store(&d)
	pod.spec.Store(spec)
	return pod.passivateAll(ctx)
}

func sameDefinition(a, b Definition) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// note makes a definition durable as the next revision of its record.
func (p *Pods) note(ctx context.Context, d *stored) error {
	state, err := json.Marshal(d.Definition)
	if err != nil {
		return fmt.Errorf("pod %s: encode its definition: %w", d.name, err)
	}
	next := snapshot.Record{
		Life: d.record.Life, Revision: d.record.Revision + 1, Reserved: d.record.Revision + 1,
		Changed: p.sys.Now().UTC(), Codec: "json", State: state,
	}
	u := persist.Unit{
		Key: persist.Key{Pod: definitions, Name: d.name}, Life: d.record.Life, Expect: d.record.Revision, Record: &next,
		Changes: []persist.Change{{Revision: next.Revision, Time: next.Changed, Type: "defined", Codec: "json", Data: state}},
	}
	life, err := p.commit(ctx, u)
	if err != nil {
		return fmt.Errorf("store the definition of pod %s: %w", d.name, err)
	}
	next.Life = life
	d.record = next
	return nil
}

// commit brings one unit that belongs to no entity's activation into the store.
func (p *Pods) commit(ctx context.Context, u persist.Unit) (life uint64, err error) {
	done := p.sys.NewPromise()
	p.committer.Lane(func(r []persist.Result) {
		if err := r[0].Outcome.Err; err != nil {
			done.Fail(err)
			return
		}
		done.Complete(r[0].Outcome.Life)
	}).Submit(u, nil)
	v, err := done.Wait(ctx)
	if err != nil {
		return 0, err
	}
	return v.(uint64), nil
}

// storedDefinitions reads the definitions of all pods, by name.
func (p *Pods) storedDefinitions(ctx context.Context) ([]stored, error) {
	var out []stored
	for after := ""; ; {
		items, err := p.store().List(ctx, definitions, persist.ListOptions{After: after})
		if err != nil {
			return nil, fmt.Errorf("read the definitions: %w", err)
		}
		if len(items) == 0 {
			return out, nil
		}
		for _, i := range items {
			d := stored{name: i.Name, record: i.Record}
			if i.Err == nil {
				i.Err = json.Unmarshal(i.Record.State, &d.Definition)
			}
			if i.Err != nil {
				return nil, fmt.Errorf("read the definition of pod %s: %w", i.Name, i.Err)
			}
			out = append(out, d)
		}
		after = items[len(items)-1].Name
	}
}

// Drop removes a document pod. With cascade it deletes the pod's entities
// first; without, a pod that has any stays and the error wraps ErrNotEmpty.
// Meanwhile the pod takes no messages. A drop that fails half-way can be
// repeated.
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
		return fmt.Errorf("%w: pod %s is defined by a program; only document pods can be deleted", ErrReadOnly, name)
	}
	pod.dropping.Store(true)
	defer pod.dropping.Store(false)
	if err := pod.passivateAll(ctx); err != nil {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	if err := pod.clear(ctx, cascade); err != nil {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	d := pod.def.Load()
	if _, err := p.commit(ctx, persist.Unit{
		Key: persist.Key{Pod: definitions, Name: name}, Life: d.record.Life, Expect: d.record.Revision, Delete: true,
		Changes: []persist.Change{{Revision: d.record.Revision + 1, Time: p.sys.Now().UTC(), Type: "deleted"}},
	}); err != nil {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	p.mu.Lock()
	delete(p.pods, name)
	p.mu.Unlock()
	pod.manager.Stop()
	return p.sys.AwaitStop(ctx, pod.manager)
}

// clear deletes the pod's entities, or fails when there is one and it must not.
func (p *Pod) clear(ctx context.Context, cascade bool) error {
	dir := internal{p.pods}
	for {
		items, err := p.pods.store().List(ctx, p.name, persist.ListOptions{})
		if err != nil || len(items) == 0 {
			return err
		}
		if !cascade {
			return fmt.Errorf("%w: it has entities, such as %q; cascade deletes them", ErrNotEmpty, items[0].Name)
		}
		for _, i := range items {
			ref := entity.NewRef(dir, persist.Key{Pod: p.name, Name: i.Name})
			if _, err := entity.Ask[entity.Ack](ctx, ref, entity.Delete(entity.Condition{})); err != nil && !errors.Is(err, entity.ErrNotFound) {
				return err
			}
		}
	}
}

// internal is the directory as the pods' own work uses it.
type internal struct{ *Pods }
