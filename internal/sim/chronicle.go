package sim

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// entry is a change that has become durable. Retention may have dropped it from
// the store since; what is kept here is all there ever was.
type entry struct {
	persist.Change
	process int       // the one that has written it; 0: it is not known which
	at      time.Time // when, by the clock of that process
	before  *entry    // of the same life
	state   []byte    // what it led to, as JSON; nil if that is not known, or is nothing
	folded  any       // the same, of an event-sourced entity
	agreed  []byte    // another rendering that was found to say the same
	spoiled bool      // the store cannot read it any more
}

func (e *entry) deletes() bool { return e.Type == "deleted" && len(e.Data) == 0 }

func (e *entry) tag() entity.ETag { return entity.ETag{Life: e.Life, Revision: e.Revision} }

// chronicle is the journal as it would be if nothing was ever dropped from it.
type chronicle struct {
	all     []*entry // by position
	by      map[persist.Key][]*entry
	jumps   map[persist.Key]bool // whose times do not rise, since each process has a clock of its own
	spoiled map[persist.Key]bool // of whose changes some cannot be read
	through uint64
}

// witness notes what has become durable. It is called before the store may drop
// any of it.
func (r *run) witness() {
	c := &r.chronicle
	if c.by == nil {
		c.by, c.jumps, c.spoiled = map[persist.Key][]*entry{}, map[persist.Key]bool{}, map[persist.Key]bool{}
	}
	for {
		log, err := r.disk.base.Log(context.Background(), c.through, 100)
		if err != nil {
			panic(err) // nothing fails it
		}
		for i := range log {
			e := &entry{Change: log[i]}
			if w := r.active; w != nil && !w.dead {
				e.process, e.at = w.number, w.sys.Now()
			}
			c.add(e)
		}
		if len(log) < 100 {
			return
		}
	}
}

func (c *chronicle) add(e *entry) {
	c.through = e.Position
	c.all = append(c.all, e)
	list := c.by[e.Key]
	if len(list) > 0 {
		last := list[len(list)-1]
		if last.Life == e.Life {
			e.before = last
		}
		if e.Time.Before(last.Time) {
			c.jumps[e.Key] = true
		}
	}
	c.by[e.Key] = append(list, e)
	e.make()
}

// make works out the state that the change led to.
func (e *entry) make() {
	switch {
	case e.Err != nil || e.deletes():
	case e.Event && (e.Key.Pod == books || e.Key.Pod == diaries):
		s := journalled{Made: true}
		if e.before != nil {
			s = e.before.folded.(journalled) // all changes of a life are events
		}
		var was noted
		e.decode(&was)
		s.Log = with(s.Log, was.ID)
		e.fold(s)
	case e.Event && e.Key.Pod == purses:
		a := account{Balance: endowment}
		if e.before != nil {
			a = e.before.folded.(account)
		}
		a.Sent, a.Got = slices.Clip(a.Sent), slices.Clip(a.Got)
		if e.Type == "withdrawn" {
			var out withdrawn
			e.decode(&out)
			a.withdraw(out)
		} else {
			var in deposited
			e.decode(&in)
			a.deposit(in)
		}
		e.fold(a)
	case !e.Event:
		e.state = e.json()
	}
}

func (e *entry) fold(state any) {
	e.folded = state
	e.state, _ = json.Marshal(state) // it is plain
}

// json is the change's data.
func (e *entry) json() []byte {
	codec, err := snapshot.CodecByName(e.Codec)
	if err != nil {
		return nil
	}
	text, err := codec.ToJSON(e.Data)
	if err != nil {
		return nil
	}
	return text
}

func (e *entry) decode(v any) {
	if err := json.Unmarshal(e.json(), v); err != nil {
		panic(err) // it was written by the type's own codec
	}
}

// is reports whether a rendering is of the state that the change led to.
func (e *entry) is(state []byte) bool {
	if bytes.Equal(state, e.state) || e.agreed != nil && bytes.Equal(state, e.agreed) {
		return true
	}
	if state == nil || e.state == nil || !sameJSON(state, e.state) {
		return false
	}
	e.agreed = bytes.Clone(state)
	return true
}

func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, errP := json.Marshal(x)
	q, errQ := json.Marshal(y)
	return errP == nil && errQ == nil && bytes.Equal(p, q)
}

// spoil makes the newest change of a frail entity unreadable, if there is one and
// the disk can do that.
func (r *run) spoil() bool {
	m, can := r.disk.base.(inMemory)
	for i := len(r.chronicle.all) - 1; i >= 0 && can; i-- {
		if e := r.chronicle.all[i]; e.Key.Pod == frail {
			m.DamageChange(e.Change)
			e.spoiled, r.damaged[e.Key], r.chronicle.spoiled[e.Key] = true, true, true
			return true
		}
	}
	return false
}

// at returns the change at a position, nil if there is none.
func (c *chronicle) at(position uint64) *entry {
	i, found := slices.BinarySearchFunc(c.all, position, func(e *entry, at uint64) int { return cmp.Compare(e.Position, at) })
	if !found {
		return nil
	}
	return c.all[i]
}

// find returns an entity's change of a revision, nil if there is none.
func (c *chronicle) find(key persist.Key, tag entity.ETag) *entry {
	list := c.by[key]
	i, found := slices.BinarySearchFunc(list, tag, func(e *entry, t entity.ETag) int {
		return cmp.Or(cmp.Compare(e.Life, t.Life), cmp.Compare(e.Revision, t.Revision))
	})
	if !found {
		return nil
	}
	return list[i]
}

// trimmed is the position through which retention may have dropped changes.
func (r *run) trimmed() uint64 {
	mark, err := persist.TrimmedThrough(context.Background(), r.disk.base)
	if err != nil {
		panic(err) // nothing fails it
	}
	return mark
}
