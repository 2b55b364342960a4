package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/entity"
)

// The pods of the simulation. Entities of the first four keep a log of the
// messages that they accepted; their histories are checked for linearizability,
// those of beats between two crashes.
const (
	things = "things" // synchronous
	books  = "books"  // event-sourced
	frail  = "frail"  // synchronous, and their records get damaged
	beats  = "beats"  // asynchronous
)

// flushed is the interval of asynchronous pods.
const flushed = 40 * time.Millisecond

// journalled is a state that tells which messages made it.
type journalled struct {
	Made bool     `json:"made"` // by Init, or by New
	Log  []string `json:"log"`
	Last []string `json:"last"` // the last entry, always in the same place
}

// seen is what an answer tells of the state that it was computed on, with the
// answer's own change.
type seen struct {
	Log  []string
	Life uint64   // 0: the store has not named it
	Last []string // of the state itself; nil if the type has none
}

// The messages of entities with a log. Each has an ID that goes into the log.
type (
	add    struct{ ID string }     // answers with what it has seen
	note   struct{ ID string }     // is acknowledged
	touch  struct{ ID string }     // changes nothing
	reject struct{ ID string }     // changes the state, and then says no
	fail   struct{ ID string }     // changes it, sends, and then fails
	crash  struct{ ID string }     // changes it, and then panics
	look   struct{}                // is a query
	tell   struct{ ID, To string } // sends a note on
	later  struct{ ID string }     // has itself sent something in a while
	remind struct{ ID string }     // the same, and durably
	pipe   struct{ ID, To string } // asks another one aside
	block  struct{ ID string }     // takes long
	pin    struct{ ID string }     // stays in memory, or no longer
	due    struct {                // comes later
		ID   string
		Life uint64 // of the entity that sent it
	}
	piped struct {
		ID    string
		Life  uint64
		Empty bool // it saw nothing
	}
	noted struct{ ID string } // an event
)

// with appends to a log that belongs to somebody else.
func with(log []string, id string) []string { return append(slices.Clone(log), id) }

// reply is what handlers answer with.
func reply(c *entity.Context, log []string) seen { return seen{Log: slices.Clone(log), Life: c.Life()} }

// refusal is the rejection of a message, which tells what it was judged on.
func refusal(log []string) error { return entity.Rejectf("%s", strings.Join(log, " ")) }

// errOnPurpose is what failing handlers return.
var errOnPurpose = errors.New("on purpose")

// logged makes handlers of a pod whose state changes by put.
func logged[S any](w *process, pod string, log func(*S) []string, put func(*entity.Context, *S, string)) entity.Handlers[S] {
	on := func(c *entity.Context, s *S, id string) { put(c, s, id) }
	return entity.Handlers[S]{
		"add": entity.Reply(func(c *entity.Context, s *S, m add) (seen, error) {
			r := reply(c, with(log(s), m.ID))
			on(c, s, m.ID)
			if typed, is := any(s).(*journalled); is {
				r.Last = typed.Last
			}
			return r, nil
		}),
		"note":  entity.On(func(c *entity.Context, s *S, m note) error { on(c, s, m.ID); return nil }),
		"touch": entity.On(func(*entity.Context, *S, touch) error { return nil }),
		"reject": entity.On(func(c *entity.Context, s *S, m reject) error {
			before := slices.Clone(log(s))
			on(c, s, m.ID)
			c.Send(pod, c.Name(), note{m.ID + "-sent"})
			return refusal(before)
		}),
		"fail": entity.On(func(c *entity.Context, s *S, m fail) error {
			on(c, s, m.ID)
			c.Send(pod, c.Name(), note{m.ID + "-sent"})
			c.SendAfter(time.Millisecond, pod, c.Name(), note{m.ID + "-sent"})
			c.Remind(m.ID, entity.Reminder{Message: note{m.ID + "-sent"}})
			return errOnPurpose
		}),
		"crash": entity.On(func(c *entity.Context, s *S, m crash) error { on(c, s, m.ID); panic("on purpose") }),
		"look":  entity.Query(func(c *entity.Context, s *S, _ look) (seen, error) { return reply(c, log(s)), nil }),
		"tell": entity.On(func(c *entity.Context, s *S, m tell) error {
			on(c, s, m.ID)
			c.Send(pod, m.To, note{m.ID + "-told"})
			return nil
		}),
		"later": entity.On(func(c *entity.Context, s *S, m later) error {
			on(c, s, m.ID)
			c.SendAfter(time.Duration(w.sys.Uint64()%20_000)*time.Microsecond, pod, c.Name(), due{m.ID + "-due", c.Life()})
			return nil
		}),
		"remind": entity.On(func(c *entity.Context, s *S, m remind) error {
			on(c, s, m.ID)
			at := c.Now().Add(time.Duration(w.sys.Uint64()%40_000) * time.Microsecond)
			c.Remind(m.ID, entity.Reminder{At: at, Message: due{m.ID + "-rung", c.Life()}})
			return nil
		}),
		"due": entity.On(func(c *entity.Context, s *S, m due) error {
			w.sameLife(c, m.ID, m.Life)
			if r, is := c.Reminder(); is && c.Now().Before(r.Due) {
				w.wrong("G3: %s/%s was reminded of %s %v early", c.Pod(), c.Name(), m.ID, r.Due.Sub(c.Now()))
			}
			on(c, s, m.ID)
			return nil
		}),
		"pipe": entity.On(func(c *entity.Context, s *S, m pipe) error {
			on(c, s, m.ID)
			life := c.Life()
			c.PipeTo(func(ctx context.Context) (any, error) {
				_ = w.sys.Sleep(ctx, time.Duration(w.sys.Uint64()%5_000)*time.Microsecond)
				ctx, cancel := w.sys.WithTimeout(ctx, time.Second)
				defer cancel()
				_, err := entity.Ask[seen](ctx, w.ref(pod, m.To), look{})
				return piped{m.ID + "-piped", life, err != nil}, nil
			})
			return nil
		}),
		"piped": entity.On(func(c *entity.Context, s *S, m piped) error {
			w.sameLife(c, m.ID, m.Life)
			on(c, s, m.ID)
			return nil
		}),
		"pin": entity.On(func(c *entity.Context, s *S, m pin) error {
			on(c, s, m.ID)
			if c.Revision()%2 == 0 {
				c.PausePassivation()
			} else {
				c.ResumePassivation()
			}
			c.Logger().Debug("pinned", "at", c.Now())
			return nil
		}),
		"block": entity.On(func(c *entity.Context, s *S, m block) error {
			_ = w.sys.Sleep(context.Background(), 30*time.Millisecond)
			on(c, s, m.ID)
			return nil
		}),
	}
}

// sameLife notes a message of an earlier life that reached a later one. A life
// is 0 in the turn that makes it.
func (w *process) sameLife(c *entity.Context, id string, life uint64) {
	if life != 0 && c.Life() != 0 && life != c.Life() {
		w.wrong("G6: %s/%s got %s of life %d in life %d", c.Pod(), c.Name(), id, life, c.Life())
	}
}

// initial may take a while, or fail.
func (w *process) initial(ctx context.Context, name string) error {
	if w.rng.IntN(4) == 0 {
		_ = w.sys.Sleep(ctx, time.Duration(w.rng.IntN(4))*time.Millisecond)
	}
	if w.unruly && w.rng.IntN(8) == 0 {
		return fmt.Errorf("initialise %s: %w", name, errOnPurpose)
	}
	return nil
}

// logs is a pod of entities with a log, whose state is the log itself.
func (w *process) logs(pod string, durability entity.Durability) entity.Type[journalled] {
	return entity.Type[journalled]{
		Name: pod, Durability: durability, Index: w.indexing.paths(w.run, pod),
		Init: func(ctx context.Context, name string) (journalled, error) {
			return journalled{Made: true}, w.initial(ctx, name)
		},
		Handlers: logged(w, pod, func(s *journalled) []string { return s.Log },
			func(_ *entity.Context, s *journalled, id string) {
				s.Log = append(s.Log, id)
				if len(s.Last) == 0 {
					s.Last = make([]string, 1)
				}
				s.Last[0] = id
			}),
	}
}

// sourcedLogs is one whose truth is its events.
func (w *process) sourcedLogs(pod string) entity.Sourced[journalled] {
	return entity.Sourced[journalled]{
		Name: pod, SnapshotEvery: 3, Index: w.indexing.paths(w.run, pod),
		New: func(string) journalled { return journalled{Made: true} },
		Commands: logged(w, pod, func(s *journalled) []string { return s.Log },
			func(c *entity.Context, _ *journalled, id string) { c.Raise(noted{id}) }),
		Events: entity.Events[journalled]{
			"noted": entity.Apply(func(s *journalled, e noted) { s.Log = append(s.Log, e.ID) }),
		},
	}
}
