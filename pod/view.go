package pod

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// View is an entity's acknowledged state at one revision.
type View struct {
	Pod, Name string
	Life      uint64
	Revision  uint64
	Changed   time.Time
	record    snapshot.Record
	spec      *entity.Spec // nil: unknown to this program
}

// ETag names the view's revision.
func (v *View) ETag() entity.ETag { return entity.ETag{Life: v.Life, Revision: v.Revision} }

// Encoded returns the state as it is kept, and the name of its snapshot.Codec.
// Nobody changes the bytes.
func (v *View) Encoded() (codec string, state []byte) { return v.record.Codec, v.record.State }

// JSON returns the state as JSON.
func (v *View) JSON() ([]byte, error) {
	if v.spec != nil {
		return v.spec.JSON(&v.record)
	}
	codec, err := snapshot.CodecByName(v.record.Codec)
	if err != nil {
		return nil, fmt.Errorf("%s/%s: %w", v.Pod, v.Name, err)
	}
	return codec.ToJSON(v.record.State)
}

// Get returns an entity's acknowledged state: it sees every write that was
// acknowledged before the call, wakes nobody and waits for nobody. It fails
// with entity.ErrNotFound, entity.ErrQuarantined or persist.ErrUnavailable; of a
// pod whose type the program does not have also with both ErrReadOnly and
// entity.ErrQuarantined, for an event-sourced entity whose state only its type
// can make.
func (p *Pod) Get(ctx context.Context, name string) (View, error) {
	if err := entity.CheckName(name); err != nil {
		return View{}, err
	}
	if r := p.acknowledged(name); r != nil {
		return p.view(name, r)
	}
	r, err := p.load(ctx, name)
	if r := p.acknowledged(name); r != nil {
		// The entity came into memory meanwhile. The store may be ahead of what
		// is acknowledged, and a later read of the view must not go back.
		return p.view(name, r)
	}
	switch {
	case errors.Is(err, persist.ErrNotFound):
		return View{}, fmt.Errorf("%w: %s/%s", entity.ErrNotFound, p.name, name)
	case err != nil:
		return View{}, p.unreadable(name, err)
	}
	p.readable(name)
	return p.view(name, &r)
}

// Resident returns the acknowledged state of an entity if it exists and is in
// memory, as Get does, which also reads the others.
func (p *Pod) Resident(name string) (View, bool) {
	r := p.acknowledged(name)
	if r == nil || r.Revision == 0 {
		return View{}, false
	}
	v, err := p.view(name, r)
	return v, err == nil
}

// load reads an entity from the store, as the pod's type sees it now.
func (p *Pod) load(ctx context.Context, name string) (snapshot.Record, error) {
	key := persist.Key{Pod: p.name, Name: name}
	r, err := p.store().Load(ctx, key)
	return p.complete(ctx, key, r, err)
}

// complete makes what the store gave for a key a record of the pod's type as it
// is now. It may have been written by an earlier version of the type.
func (p *Pod) complete(ctx context.Context, key persist.Key, r snapshot.Record, err error) (snapshot.Record, error) {
	spec := p.spec.Load()
	if spec == nil {
		if err != nil {
			return r, err
		}
		return p.typeless(ctx, key, r)
	}
	if r, err = spec.Complete(ctx, p.store(), key, r, err); err != nil && !errors.Is(err, persist.ErrNotFound) {
		err = fmt.Errorf("%s: %w", key, err)
	}
	return r, err
}

// acknowledged returns the view of a resident entity, nil if there is none.
func (p *Pod) acknowledged(name string) *snapshot.Record {
	s := p.slots.get(name)
	if s == nil {
		return nil
	}
	return s.view.Load()
}

func (p *Pod) view(name string, r *snapshot.Record) (View, error) {
	if r.Revision == 0 {
		return View{}, fmt.Errorf("%w: %s/%s", entity.ErrNotFound, p.name, name)
	}
	return View{Pod: p.name, Name: name, Life: r.Life, Revision: r.Revision, Changed: r.Changed, record: *r, spec: p.spec.Load()}, nil
}

// unreadable lists the entity as quarantined if its record is to blame.
func (p *Pod) unreadable(name string, err error) error {
	var typeless *typelessError
	switch {
	case errors.As(err, &typeless):
		p.suspect(name, err)
	case errors.Is(err, snapshot.ErrCorrupt), errors.Is(err, snapshot.ErrNewer):
		err = fmt.Errorf("%w: %w", entity.ErrQuarantined, err)
		p.suspect(name, err)
	}
	return err
}

// Item is one line of a page: a view, or why there is none.
type Item struct {
	Name string
	View View
	Err  error // wraps entity.ErrQuarantined
}

// Page is a part of a pod's entities, by name.
type Page struct {
	Items []Item
	// Next is the name behind which the next page starts; empty at the end.
	Next string
}

// List returns a page of the pod's entities as they are acknowledged; large
// states make it end early. It wakes nobody and never blocks writers.
func (p *Pod) List(ctx context.Context, o persist.ListOptions) (Page, error) {
	ended := p.slots.ended.Load()
	stored, err := p.store().List(ctx, p.name, o)
	if err != nil {
		return Page{}, fmt.Errorf("list pod %s: %w", p.name, err)
	}
	var page Page
	if stored.More {
		page.Next = stored.Items[len(stored.Items)-1].Name
	}
	for _, i := range p.withRemoving(stored, o) {
		line, err := p.line(ctx, i, ended)
		switch {
		case err == nil || errors.Is(err, entity.ErrQuarantined):
			page.Items = append(page.Items, Item{Name: i.Name, View: line, Err: err})
		case !errors.Is(err, entity.ErrNotFound):
			return Page{}, err
		}
	}
	return page, nil
}

// withRemoving returns a page of the store with the entities in its range whose
// deletion is under way: the store may have lost them, and they are there until
// that is acknowledged.
func (p *Pod) withRemoving(stored persist.Page, o persist.ListOptions) []persist.Item {
	if p.removing.Load() == 0 {
		return stored.Items
	}
	items, byName := stored.Items, func(i persist.Item, name string) int { return strings.Compare(i.Name, name) }
	for _, s := range p.resident(func(s *slot) bool { return s.ends.Load() && s.name > o.After && strings.HasPrefix(s.name, o.Prefix) }) {
		if stored.More && s.name > stored.Items[len(stored.Items)-1].Name {
			break
		}
		if at, found := slices.BinarySearchFunc(items, s.name, byName); !found {
			items = slices.Insert(items, at, persist.Item{Name: s.name, Err: persist.ErrNotFound})
		}
	}
	return items
}

// line is one entity of a page that was read from the store when so many slots
// had ended.
func (p *Pod) line(ctx context.Context, i persist.Item, ended uint64) (View, error) {
	if r := p.acknowledged(i.Name); r != nil {
		return p.view(i.Name, r)
	}
	if spec := p.spec.Load(); spec != nil && spec.Durability.IsAsync() && p.slots.ended.Load() != ended {
		// It may be one that left since, or was deleted, and whose acknowledged
		// state was written after the page was read, or never.
		return p.Get(ctx, i.Name)
	}
	r, err := p.complete(ctx, persist.Key{Pod: p.name, Name: i.Name}, i.Record, i.Err)
	if errors.Is(err, persist.ErrNotFound) { // deleted meanwhile
		return View{}, fmt.Errorf("%w: %s/%s", entity.ErrNotFound, p.name, i.Name)
	}
	if err != nil {
		if r := p.acknowledged(i.Name); r != nil { // it came into memory, or was deleted, meanwhile
			return p.view(i.Name, r)
		}
		return View{}, p.unreadable(i.Name, err)
	}
	p.readable(i.Name)
	return p.view(i.Name, &r)
}
