package modeltest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
)

// The pods, one of each kind of entity. In all of them but docs a state is the
// log of what was accepted.
const (
	syncPod     = "syncs"
	asyncPod    = "asyncs"
	sourcedPod  = "sourceds"
	docPod      = "docs"
	volatilePod = "volatiles"
)

var (
	podNames    = []string{syncPod, asyncPod, sourcedPod, docPod, volatilePod}
	entityNames = []string{"a", "b"}
)

const asyncInterval = 20 * time.Millisecond

// ledger is the state of all entities that are no documents.
type ledger struct {
	Log []string `json:"log"`
}

// What is sent to them.
type (
	add    struct{ ID string } // accepted
	note   struct{ ID string } // accepted, answered with the log
	even   struct{ ID string } // accepted while the log's length is even
	pair   struct{ ID string } // accepted, as two entries
	boom   struct{ ID string } // changes the state, sends, and panics
	spoil  struct{ ID string } // changes the state and fails
	idle   struct{}            // accepted, changes nothing, creates nobody
	peek   struct{}            // query: the log
	drop   struct{ ID string } // what another entity sends once
	refuse struct{ ID string } // changes the state and rejects
	post   struct {            // accepted, and sends on, once
		ID, Pod, Name string
		N             int
		Bad           bool // and one that the receiver rejects
	}
)

// seen is an answer that shows a state.
type seen struct {
	Life, Before uint64 // the life, and the revision before the turn
	Log          []string
}

// parcelID names the ith message of a post.
func parcelID(id string, i int) string { return fmt.Sprintf("p%s.%d", id[1:], i) }

// sendParcels does what a post says.
func sendParcels(c *entity.Context, m post) {
	for i := range m.N {
		id := parcelID(m.ID, i)
		if m.Pod == docPod {
			c.SendOnce(m.Pod, m.Name, mergeOf(id))
			continue
		}
		if m.Bad && i == 0 {
			c.SendOnce(m.Pod, m.Name, refuse{"x" + id})
		}
		c.SendOnce(m.Pod, m.Name, drop{id})
	}
}

// mergeOf is the message that adds an id to a document.
func mergeOf(id string) entity.Merge { return entity.Merge{id: 1, "last": id} }

// handlers are the messages of ledgers; put adds entries to a state.
func handlers(put func(c *entity.Context, l *ledger, ids ...string)) entity.Handlers[ledger] {
	return entity.Handlers[ledger]{
		"add":  entity.On(func(c *entity.Context, l *ledger, m add) error { put(c, l, m.ID); return nil }),
		"drop": entity.On(func(c *entity.Context, l *ledger, m drop) error { put(c, l, m.ID); return nil }),
		"pair": entity.On(func(c *entity.Context, l *ledger, m pair) error { put(c, l, m.ID, m.ID+"+"); return nil }),
		"note": entity.Reply(func(c *entity.Context, l *ledger, m note) (seen, error) {
			before := c.Revision()
			put(c, l, m.ID)
			return seen{c.Life(), before, l.Log}, nil
		}),
		"even": entity.On(func(c *entity.Context, l *ledger, m even) error {
			odd := len(l.Log)%2 == 1
			put(c, l, m.ID)
			if odd {
				return entity.Rejectf("odd")
			}
			return nil
		}),
		"boom": entity.On(func(c *entity.Context, l *ledger, m boom) error {
			put(c, l, m.ID)
			c.SendOnce(syncPod, "a", drop{"x" + m.ID})
			panic("on purpose")
		}),
		"spoil": entity.On(func(c *entity.Context, l *ledger, m spoil) error {
			put(c, l, m.ID)
			c.SendOnce(sourcedPod, "a", drop{"x" + m.ID})
			return errors.New("on purpose")
		}),
		"idle": entity.On(func(*entity.Context, *ledger, idle) error { return nil }),
		"refuse": entity.On(func(c *entity.Context, l *ledger, m refuse) error {
			put(c, l, m.ID)
			return entity.Rejectf("never")
		}),
		"post": entity.On(func(c *entity.Context, l *ledger, m post) error {
			put(c, l, m.ID)
			sendParcels(c, m)
			return nil
		}),
		"peek": entity.Query(func(c *entity.Context, l *ledger, _ peek) (seen, error) {
			return seen{c.Life(), c.Revision(), l.Log}, nil
		}),
	}
}

func creation() entity.Creation {
	return entity.Creation{By: []string{"add", "drop", "pair", "note", "even", "boom", "spoil", "refuse", "post"}}
}

// ledgers is a type whose records are the truth.
func ledgers(name string, d entity.Durability, eager bool) entity.Type[ledger] {
	return entity.Type[ledger]{
		Name: name, Durability: d, Create: creation(), Eager: eager,
		Handlers: handlers(func(_ *entity.Context, l *ledger, ids ...string) { l.Log = append(l.Log, ids...) }),
	}
}

// slowly gives a type an Init that takes its time.
func slowly(sys *actor.System, t entity.Type[ledger]) entity.Type[ledger] {
	t.Init = func(ctx context.Context, _ string) (ledger, error) {
		return ledger{}, sys.Sleep(ctx, time.Duration(sys.Uint64()%3)*time.Millisecond)
	}
	return t
}

// entered is the one event of the event-sourced type.
type entered struct{ ID string }

// sourceds is the type whose journal is the truth.
func sourceds() entity.Sourced[ledger] {
	return entity.Sourced[ledger]{
		Name: sourcedPod, Create: creation(), SnapshotEvery: 3,
		Commands: handlers(func(c *entity.Context, _ *ledger, ids ...string) {
			for _, id := range ids {
				c.Raise(entered{id})
			}
		}),
		Events: entity.Events[ledger]{
			"entered": entity.Apply(func(l *ledger, e entered) { l.Log = append(l.Log, e.ID) }),
		},
	}
}
