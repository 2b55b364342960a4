package pod

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// change is a change of the journal on its way to those who watch it. What is
// made of it is made once for all of them; of what reads the store two may make
// the same.
type change struct {
	persist.Change
	replaced *snapshot.Record // the state before, if it is in memory

	once  sync.Once
	shown Event
	full  atomic.Pointer[Event] // with the state of an event-sourced entity
	then  atomic.Pointer[situation]
	prior atomic.Pointer[situation]
}

// situation is an entity before or behind a change: absent without a view,
// unless it is unknown, for a reason.
type situation struct {
	view    *View
	unknown bool
	reason  GapReason
}

// unknownFor has no reason where nothing is missing but the pod's type, which the
// program lacks for all its changes.
func unknownFor(err error) situation {
	switch {
	case errors.Is(err, ErrReadOnly), errors.Is(err, ErrNoPod):
		return situation{unknown: true}
	case errors.Is(err, ErrDropped):
		return situation{unknown: true, reason: GapTrimmed}
	}
	return situation{unknown: true, reason: GapDamaged}
}

// size is about the memory that a change takes, rendered.
func (c *change) size() int { return 3*len(c.Data) + len(c.Key.Pod) + len(c.Key.Name) + 400 }

// deletes reports whether the change ends a life.
func deletes(c *persist.Change) bool { return c.Type == "deleted" && len(c.Data) == 0 }

// rendered is an event as one line of JSON, made once.
type rendered struct {
	once sync.Once
	json []byte
}

// event returns the change as it is shown without a Match.
func (c *change) event(p *Pods) Event {
	c.once.Do(func() {
		c.shown = Event{
			Kind: EventChanged, Position: c.Position, Pod: c.Key.Pod, Name: c.Key.Name,
			Life: c.Life, Revision: c.Revision, Time: c.Time, Type: c.Type, line: &rendered{},
		}
		switch {
		case deletes(&c.Change):
			c.shown.Kind = EventDeleted
		case c.Event:
			c.shown.Data = jsonOf(c.Codec, c.Data)
		default:
			v := p.viewOf(&c.Change)
			if state, err := v.JSON(); err == nil {
				c.shown.State = state
			}
		}
	})
	return c.shown
}

// eventWith returns the change with the state behind it.
func (c *change) eventWith(p *Pods, after *situation) Event {
	e := c.event(p)
	if !c.Event || after.view == nil {
		return e
	}
	if c.full.Load() == nil {
		if state, err := after.view.JSON(); err == nil {
			e.State, e.line = state, &rendered{}
		}
		c.full.CompareAndSwap(nil, &e)
	}
	return *c.full.Load()
}

// after returns the entity behind the change. Its error is that of a store that
// is down, or of ctx.
func (c *change) after(ctx context.Context, p *Pods) (*situation, error) {
	return once(&c.then, func() (situation, error) {
		switch {
		case deletes(&c.Change):
			return situation{}, nil
		case c.Event:
			return p.situationBehind(ctx, &c.Change)
		}
		v := p.viewOf(&c.Change)
		return situation{view: &v}, nil
	})
}

// before returns the entity before the change, as after does behind it.
func (c *change) before(ctx context.Context, p *Pods) (*situation, error) {
	return once(&c.prior, func() (situation, error) {
		if c.Position == c.Life {
			return situation{}, nil // it began the life
		}
		pod, err := p.Pod(c.Key.Pod)
		if err != nil {
			return situation{unknown: true}, nil
		}
		if r := c.replaced; r != nil {
			v, _ := pod.view(c.Key.Name, r)
			return situation{view: &v}, nil
		}
		prior, found, err := pod.previous(ctx, &c.Change)
		if err != nil {
			return situation{}, err
		}
		if !found {
			return situation{unknown: true}, nil
		}
		return p.situationBehind(ctx, &prior)
	})
}

// once returns what was made before, or makes it.
func once(at *atomic.Pointer[situation], f func() (situation, error)) (*situation, error) {
	if s := at.Load(); s != nil {
		return s, nil
	}
	s, err := f()
	if err != nil {
		return nil, err
	}
	at.CompareAndSwap(nil, &s)
	return at.Load(), nil
}

// situationBehind is the state that a change led to.
func (p *Pods) situationBehind(ctx context.Context, c *persist.Change) (situation, error) {
	switch {
	case c.Err != nil:
		return unknownFor(c.Err), nil
	case !c.Event:
		v := p.viewOf(c)
		return situation{view: &v}, nil
	}
	pod, err := p.Pod(c.Key.Pod)
	if err != nil {
		return unknownFor(err), nil
	}
	v, err := pod.foldTo(ctx, c)
	switch {
	case ctx.Err() != nil:
		return situation{}, ctx.Err()
	case errors.Is(err, persist.ErrUnavailable):
		return situation{}, err
	case err != nil:
		return unknownFor(err), nil
	}
	return situation{view: &v}, nil
}

// JSON renders what an event tells, without its Kind and ID, as one line of
// JSON: of a gap {"from","to","reason"}, the first two not if it is GapVolatile;
// of others {"pod","name","life","revision","changed","type"} and, where there are
// any, "position", "state", "event" (Data) and "unsure". Nobody changes the bytes.
func (e *Event) JSON() []byte {
	if e.line == nil {
		e.line = &rendered{}
	}
	e.line.once.Do(func() { e.line.json = e.render() })
	return e.line.json
}

func (e *Event) render() []byte {
	var v any
	switch {
	case e.Kind == EventGap && e.Reason == GapVolatile:
		v = struct {
			Reason GapReason `json:"reason"`
		}{e.Reason}
	case e.Kind == EventGap:
		v = struct {
			From   uint64    `json:"from"`
			To     uint64    `json:"to"`
			Reason GapReason `json:"reason"`
		}{e.From, e.To, e.Reason}
	default:
		v = struct {
			Pod      string          `json:"pod"`
			Name     string          `json:"name"`
			Life     uint64          `json:"life"`
			Revision uint64          `json:"revision"`
			Position uint64          `json:"position,omitempty"`
			Changed  time.Time       `json:"changed"`
			Type     string          `json:"type"`
			State    json.RawMessage `json:"state,omitempty"`
			Event    json.RawMessage `json:"event,omitempty"`
			Unsure   bool            `json:"unsure,omitempty"`
		}{e.Pod, e.Name, e.Life, e.Revision, e.Position, e.Time, e.Type, e.State, e.Data, e.Unsure}
	}
	b, err := json.Marshal(v)
	if err != nil { // a state that is no JSON, which none is
		return []byte("{}")
	}
	return b
}

// jsonOf renders encoded bytes as JSON; nil when that cannot be.
func jsonOf(codec string, data []byte) json.RawMessage {
	c, err := snapshot.CodecByName(codec)
	if err != nil {
		return nil
	}
	b, err := c.ToJSON(data)
	if err != nil {
		return nil
	}
	return b
}
