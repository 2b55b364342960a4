package pod

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/internal/mutant"
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
	// Durability is "sync", "async:" and an interval such as "async:500ms", or
	// "volatile".
	Durability string `json:"durability"`
	// Create says which messages create entities, of what name.
	Create CreateDefinition `json:"create"`
	// Schema is a JSON Schema (2020-12) that the states of documents must fit
	// when they change; left out, every object does. See entity.Document.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Index are the paths that queries find entities by without looking at all,
	// such as "state.floor"; at most 16.
	Index []string `json:"index,omitempty"`
}

// CreateDefinition is entity.Creation as JSON. By left out means the type's own
// rule, an empty list that nothing creates.
type CreateDefinition struct {
	By    []string `json:"by,omitzero"`
	Names string   `json:"names,omitempty"`
}

// stored is a definition with what the store knows of it.
type stored struct {
	Definition
	name    string
	record  snapshot.Record
	unsure  bool  // a change of it failed, and may have been stored all the same
	damaged error // why the definition cannot be read; it is written anew when somebody gives it
}

// unreadable is the Type of a pod whose stored definition cannot be read.
const unreadable = "unreadable"

// volatileText is the durability of pods whose entities are kept in memory
// alone.
const volatileText = "volatile"

func durabilityText(d entity.Durability) string {
	switch {
	case d.IsVolatile():
		return volatileText
	case d.IsAsync():
		return "async:" + d.Interval().String()
	}
	return "sync"
}

func parseDurability(s string) (entity.Durability, error) {
	if s == "" || s == "sync" {
		return entity.Sync(), nil
	}
	if s == volatileText {
		return entity.Volatile(), nil
	}
	if len(s) > 6 && s[:6] == "async:" {
		if d, err := time.ParseDuration(s[6:]); err == nil && d >= time.Millisecond && d <= time.Hour {
			return entity.Async(d), nil
		}
	}
	return entity.Durability{}, fmt.Errorf("%w: durability is sync, volatile, or async:<interval> with an interval of a millisecond to an hour such as async:500ms, not %q", entity.ErrDefinition, s)
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
	if _, err := indexPaths(d.name, d.Index); err != nil {
		return nil, err
	}
	return entity.Document{
		Name: d.name, Durability: durability,
		Create: entity.Creation{By: d.Create.By, Names: d.Create.Names},
		Schema: d.Schema, Index: d.Index,
	}.Spec()
}

// objectType is what the states of documents are to a JSON Schema.
const objectType = "object"

// satisfiable refuses a schema that plainly no document can fit. It is asked when
// a pod is declared: one that has such a schema goes on.
func (d *stored) satisfiable() error {
	var whole any
	if len(d.Schema) == 0 || json.Unmarshal(d.Schema, &whole) != nil {
		return nil // compiling it says what is wrong
	}
	fits := whole != false
	if members, is := whole.(map[string]any); is {
		switch t := members["type"].(type) {
		case string:
			fits = t == objectType
		case []any:
			fits = slices.Contains(t, any(objectType))
		}
	}
	if !fits {
		return fmt.Errorf("%w: the schema of %s: no document fits it, since all are objects: leave it out, or give it the type %q", entity.ErrDefinition, d.name, objectType)
	}
	return nil
}

// described is the definition that a spec amounts to.
func described(spec *entity.Spec) Definition {
	c := spec.Creation()
	return Definition{
		Type: spec.Kind, Durability: durabilityText(spec.Durability), Create: CreateDefinition{By: c.By, Names: c.Names},
		Schema: spec.Schema(), Index: spec.Index(),
	}
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
	if _, err := indexPaths(spec.Name, spec.Index()); err != nil {
		return nil, err
	}
	if err := p.changing.enter(ctx, p.sys); err != nil {
		return nil, fmt.Errorf("start pod %s: %w", spec.Name, err)
	}
	defer p.changing.leave()
	if p.closing.Load() {
		return nil, fmt.Errorf("start pod %s: %w", spec.Name, ErrStopping)
	}
	pod, err := p.Pod(spec.Name)
	if err != nil {
		return p.create(ctx, spec)
	}
	if def := pod.def.Load(); def.damaged == nil && def.Type != spec.Kind {
		return nil, fmt.Errorf("%w: %s is a %s pod in the store and cannot become a %s one", ErrExists, spec.Name, pod.def.Load().Type, spec.Kind)
	}
	if spec.Kind == entity.KindTyped && pod.spec.Load() != nil {
		return nil, fmt.Errorf("%w: the type %s is started already", ErrExists, spec.Name)
	}
	if err := pod.sameStore(spec); err != nil {
		return nil, err
	}
	if err := pod.superviseBy(ctx, spec); err != nil {
		return nil, err
	}
	if err := p.redefine(ctx, pod, spec); err != nil {
		return nil, err
	}
	pod.recoverEagerly()
	pod.resumeOutboxes()
	pod.reminders.begin()
	return pod, nil
}

// Declare makes a document pod, or changes the one of that name, durably.
func (p *Pods) Declare(ctx context.Context, name string, def Definition) (pod *Pod, created, changed bool, err error) {
	d := stored{Definition: def, name: name}
	spec, err := d.spec()
	if err == nil {
		err = d.satisfiable()
	}
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
	if def := pod.def.Load(); def.damaged == nil && def.Type != entity.KindDocument {
		return nil, false, false, fmt.Errorf("%w: %s is a typed pod", ErrExists, name)
	}
	if err := pod.sameStore(spec); err != nil {
		return nil, false, false, err
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
	if d.unsure || !sameDefinition(d.Definition, next) {
		d.Definition = next
		if err := p.note(ctx, &d); err != nil {
			pod.unsure()
			return err
		}
		d.unsure = false
	} else if current := pod.spec.Load(); current != nil {
		spec = current // entities of an earlier one may still be in memory
	}
	pod.def.Store(&d)
	pod.spec.Store(spec)
	pod.index()
	pod.quarantine("", nil)
	pod.dropping.Store(false) // a drop may have failed half-way
	outdated := func(s *slot) bool { return s.spec != spec && !mutant.On(mutant.DefinitionOutdated) }
	soon, cancel := p.sys.WithTimeout(ctx, redefineWait)
	defer cancel()
	if err := pod.passivateAll(soon, outdated, true); err != nil {
		p.sys.Logger().Warn("entities in memory keep the pod's earlier definition until they can leave it", "pod", pod.name, "error", err)
		p.sys.Go(func() { _ = pod.passivateAll(p.work, outdated, true) }) // fails only when the pods close
	}
	return nil
}

// unsure notes that the store may hold another definition than the pod runs by.
func (p *Pod) unsure() {
	d := *p.def.Load()
	d.unsure = true
	p.def.Store(&d)
}

// redefineWait is how long a change of a definition waits for the entities in
// memory. The definition holds for all others at once.
const redefineWait = 2 * time.Second

func sameDefinition(a, b Definition) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// note makes a definition durable as the next revision of its record, and says
// in d what the store holds then. An outcome that is unknown, or a record that
// such an outcome left behind, is settled by reading the store; so the caller's
// ctx does not bound it.
func (p *Pods) note(ctx context.Context, d *stored) error {
	ctx = context.WithoutCancel(ctx)
	state, err := json.Marshal(d.Definition)
	if err != nil {
		return fmt.Errorf("pod %s: encode its definition: %w", d.name, err)
	}
	for try := 0; ; try++ {
		err := p.noteOnce(ctx, d, state)
		if err == nil {
			return nil
		}
		if errors.Is(err, persist.ErrUnknown) || errors.Is(err, persist.ErrConflict) {
			if head, found := p.definitionHead(ctx, d.name); found {
				d.record = head
				if bytes.Equal(head.State, state) {
					return nil
				}
			}
		}
		if try == 1 || !errors.Is(err, persist.ErrConflict) {
			return fmt.Errorf("store the definition of pod %s: %w", d.name, err)
		}
	}
}

// definitionHead reads a definition's record; a record of revision 0 stands for
// none. found is false when the store does not say.
func (p *Pods) definitionHead(ctx context.Context, name string) (head snapshot.Record, found bool) {
	head, err := p.store().Load(ctx, persist.Key{Pod: definitions, Name: name})
	if errors.Is(err, persist.ErrNotFound) {
		return snapshot.Record{}, true
	}
	return head, err == nil
}

func (p *Pods) noteOnce(ctx context.Context, d *stored, state []byte) error {
	next := snapshot.Record{
		Life: d.record.Life, Revision: d.record.Revision + 1, Reserved: d.record.Revision + 1,
		Changed: p.sys.Now().UTC(), Codec: "json", State: state,
	}
	u := persist.Unit{
		Key: persist.Key{Pod: definitions, Name: d.name}, Life: d.record.Life, Expect: d.record.Revision, Record: &next,
		Changes: []persist.Change{{Revision: next.Revision, Time: next.Changed, Type: "defined", Codec: "json", Data: state}},
	}
	if d.damaged != nil {
		if _, err := p.commit(ctx, persist.Unit{Key: u.Key, Delete: true, Force: true}); err != nil {
			return fmt.Errorf("remove the damaged definition: %w", err)
		}
		d.damaged = nil
	}
	life, err := p.commit(ctx, u)
	if err != nil {
		return err
	}
	next.Life = life
	d.record = next
	return nil
}

// commitTimeout bounds the wait for the outcome of a unit that belongs to no
// entity.
const commitTimeout = time.Minute

// commit brings one unit that belongs to no entity's activation into the store.
func (p *Pods) commit(ctx context.Context, u persist.Unit) (life uint64, err error) {
	ctx, cancel := p.sys.WithTimeout(ctx, commitTimeout)
	defer cancel()
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
		page, err := p.store().List(ctx, definitions, persist.ListOptions{After: after})
		if err != nil {
			return nil, fmt.Errorf("read the definitions: %w", err)
		}
		for _, i := range page.Items {
			out = append(out, storedDefinition(i))
			after = i.Name
		}
		if !page.More {
			return out, nil
		}
	}
}

// storedDefinition reads one definition. One that cannot be read makes a pod
// that can be read only, until it is declared or started again.
func storedDefinition(i persist.Item) stored {
	d := stored{name: i.Name, record: i.Record}
	if i.Err == nil {
		i.Err = json.Unmarshal(i.Record.State, &d.Definition)
	}
	if i.Err != nil {
		d = stored{name: i.Name, Definition: Definition{Type: unreadable}, damaged: i.Err}
	}
	return d
}
