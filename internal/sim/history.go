package sim

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
)

// outcome is what the one who sent a message knows of it.
type outcome int

const (
	maybe   outcome = iota // nothing: it was done, or not, or will be
	done                   // it was done
	refused                // nothing was done
)

// op is one operation on an entity with a log, and what came of it.
type op struct {
	step
	process   int // the one in which it was sent
	call, ret int // events; ret 0: no answer
	outcome   outcome
	err       error

	cond     *entity.ETag // it is done at that revision alone
	exists   bool         // what an answer has seen
	life     uint64       // 0: not told
	revision uint64       // 0: not told
	log      []string
	hasLog   bool
	created  bool

	misses func(state) bool // the states that a query shows nothing of; nil: it is no such observation
}

func (o *op) key() persist.Key { return persist.Key{Pod: o.pod, Name: o.name} }

// adds reports whether the operation, if done, puts its id into the log.
func (o *op) adds() bool {
	switch o.op {
	case "add", "note", "tell", "later", "remind", "pipe", "block", "pin":
		return true
	}
	return false
}

func (o *op) deletes() bool { return o.op == "delete" || o.op == "discard" }

// settle classifies an answer.
func (o *op) settle(v any, err error) {
	o.err = err
	switch {
	case err == nil:
		o.outcome, o.exists = done, true
		o.tells(v)
	case errors.Is(err, persist.ErrUnknown), errors.Is(err, actor.ErrTimeout):
		o.outcome = maybe
	default:
		o.outcome = refused
		var no *entity.RejectedError
		if errors.As(err, &no) && o.op == "reject" {
			o.log, o.hasLog = strings.Fields(no.Reason), true
		}
	}
}

func (o *op) tells(v any) {
	switch v := v.(type) {
	case entity.Ack:
		o.life, o.revision, o.created = v.Life, v.Revision, v.Created
	case seen:
		o.life, o.log, o.hasLog = v.Life, v.Log, true
	}
}

// state is that of an entity with a log, in the model. A life of 0 is one that
// nobody has been told.
type state struct {
	exists   bool
	life     uint64
	revision uint64
	log      string
}

// after returns the states that an operation may leave, given its outcome; none
// if its answer does not fit.
func (s state) after(o *op) []any {
	next, possible := s.done(o)
	switch o.outcome {
	case refused:
		if s.refuses(o) {
			return []any{s}
		}
		return nil
	case maybe:
		if possible && next != s {
			return []any{s, next}
		}
		return []any{s}
	}
	if !possible {
		return nil
	}
	if fixed, fits := next.fits(o); fits {
		return []any{fixed}
	}
	return nil
}

// refuses reports whether the operation may have been refused here.
func (s state) refuses(o *op) bool {
	switch {
	case errors.Is(o.err, entity.ErrStale):
		return o.cond != nil && (s.life == 0 || !s.at(*o.cond))
	case errors.Is(o.err, entity.ErrNotFound):
		return !s.exists
	case o.hasLog:
		return s.log == strings.Join(o.log, " ")
	}
	return true
}

func (s state) at(tag entity.ETag) bool {
	return s.exists && s.revision == tag.Revision && (s.life == tag.Life || s.life == 0)
}

// done is the state behind an operation that was done.
func (s state) done(o *op) (next state, possible bool) {
	if o.cond != nil && !s.at(*o.cond) {
		return s, false
	}
	switch {
	case o.misses != nil:
		return s, o.misses(s)
	case o.kind == get:
		return s, s.exists == o.exists
	case o.deletes():
		if !s.exists {
			return s, false
		}
		return state{}, true
	case o.op == "look", o.op == "rebuild":
		return s, s.exists
	case o.op == "touch":
		if !s.exists && o.pod != books { // an event-sourced one is created by its first event
			return state{exists: true, revision: 1}, true
		}
		return s, true
	case !o.adds():
		return s, true
	}
	next = state{exists: true, life: s.life, revision: s.revision + 1, log: o.id}
	if s.log != "" {
		next.log = s.log + " " + o.id
	}
	return next, true
}

// fits compares what an answer has told with the state, and fills in the life.
func (s state) fits(o *op) (state, bool) {
	if !o.exists || o.deletes() {
		return s, true
	}
	if o.life != 0 && s.life != 0 && o.life != s.life || o.revision != 0 && o.revision != s.revision {
		return s, false
	}
	if o.hasLog && strings.Join(o.log, " ") != s.log {
		return s, false
	}
	if o.life != 0 {
		s.life = o.life
	}
	return s, true
}

// model is what an entity with a log is to whoever uses it.
func model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init:  func() []any { return []any{state{}} },
		Step:  func(s, in, _ any) []any { return s.(state).after(in.(*op)) },
		Equal: func(a, b any) bool { return a == b },
	}
	return m.ToModel()
}

// patience bounds the search for an order that explains a history.
const patience = 500 * time.Millisecond

// linearizable reports whether there is an order of an entity's operations that
// explains every answer. Operations without a certain outcome may take effect
// until the end.
func linearizable(history []*op) porcupine.CheckResult {
	spans := spansOf(history)
	tighten(history, spans)
	deleted := slices.ContainsFunc(history, func(o *op) bool { return o.deletes() && o.outcome != refused })
	witnessed := witnesses(history)
	var ops []porcupine.Operation
	for i, o := range history {
		if !o.tellsOrChanges() || o.outcome == maybe && o.adds() && !deleted && !witnessed[o.id] {
			continue // nobody has ever seen it
		}
		if spans[i].from > spans[i].to {
			return porcupine.Illegal
		}
		ops = append(ops, porcupine.Operation{ClientId: i, Input: o, Call: spans[i].from, Return: spans[i].to})
	}
	return porcupine.CheckOperationsTimeout(model(), ops, patience)
}

// tellsOrChanges reports whether an operation restricts the orders that explain
// a history. Leaving out the others keeps the search short.
func (o *op) tellsOrChanges() bool {
	switch o.outcome {
	case refused:
		return o.hasLog || errors.Is(o.err, entity.ErrStale) || errors.Is(o.err, entity.ErrNotFound)
	case maybe:
		return o.adds() || o.deletes() || o.op == "touch" && o.pod != books
	}
	return true
}

// span is when an operation takes effect, at some moment of it.
type span struct{ from, to int64 }

func spansOf(history []*op) []span {
	end := int64(1)
	for _, o := range history {
		end = max(end, int64(max(o.call, o.ret))+1)
	}
	spans := make([]span, len(history))
	for i, o := range history {
		spans[i] = span{int64(o.call), int64(o.ret)}
		if o.outcome == maybe {
			spans[i].to = end
		}
	}
	return spans
}

// tighten narrows the spans by what the logs tell of the order: an entry took
// effect not before those in front of it could, not after those behind it must
// have, and not after the log was shown. That loses no order and spares the
// search most of them.
func tighten(history []*op, spans []span) {
	at := map[string]int{}
	for i, o := range history {
		if o.adds() {
			at[o.id] = i
		}
	}
	for i, shown := range history {
		if !shown.hasLog || shown.outcome == maybe {
			continue
		}
		from := int64(0)
		for _, id := range shown.log {
			if j, known := at[id]; known {
				from = max(from, spans[j].from)
				spans[j].from = from
			}
		}
		spans[i].from = max(spans[i].from, from)
		to := spans[i].to
		for k := len(shown.log) - 1; k >= 0; k-- {
			if j, known := at[shown.log[k]]; known {
				to = min(to, spans[j].to)
				spans[j].to = to
			}
		}
	}
}

// witnesses returns the ids that somebody has seen.
func witnesses(history []*op) map[string]bool {
	seen := map[string]bool{}
	for _, o := range history {
		for _, id := range o.log {
			seen[id] = true
		}
	}
	return seen
}
