package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
	"github.com/twinsrv/twinsrv/snapshot"
)

// model is what is known of all entities.
type model struct {
	books   map[persist.Key]*book
	keys    []persist.Key
	lives   map[uint64]*book
	parcels map[string]*effect // the commands that send them
	sent    int
	damaged map[persist.Key]bool // entities whose records cannot be read, or could not lately
	fail    func(format string, args ...any)
}

func newModel(fail func(string, ...any)) *model {
	m := &model{
		books: map[persist.Key]*book{}, lives: map[uint64]*book{}, parcels: map[string]*effect{},
		damaged: map[persist.Key]bool{}, fail: fail,
	}
	for _, pod := range podNames {
		for _, name := range entityNames {
			k := persist.Key{Pod: pod, Name: name}
			m.keys = append(m.keys, k)
			m.books[k] = &book{m: m, key: k, effects: map[string]*effect{}, lives: map[uint64]*life{}}
		}
	}
	return m
}

func (m *model) failf(format string, args ...any) { m.fail(format, args...) }

// attempt notes that a message is sent.
func (m *model) attempt(b *book, what string, e *effect) *attempt {
	m.sent++
	a := &attempt{n: m.sent, book: b, what: what, effect: e}
	if l := b.alive(); l != nil {
		a.sentIn = l.n
	}
	b.attempts = append(b.attempts, a)
	if e == nil {
		return a
	}
	e.attempts = append(e.attempts, a)
	for _, entry := range e.entries {
		b.effects[entry] = e
	}
	for _, p := range e.parcels {
		m.parcels[p] = e
	}
	return a
}

// collect takes the answers that have come.
func (m *model) collect() {
	for _, k := range m.keys {
		for _, a := range m.books[k].attempts {
			if a.fate == open && a.promise.Done() {
				v, err := a.promise.Wait(context.Background())
				m.answered(a, v, err)
			}
		}
	}
}

// answered takes one answer.
func (m *model) answered(a *attempt, v any, err error) {
	a.err = err
	if err != nil {
		a.fate = m.fateOf(a, err)
		return
	}
	a.fate = accepted
	b := a.book
	switch v := v.(type) {
	case entity.Ack:
		a.ack = v
		m.acknowledged(a)
	case seen:
		m.showed(a, v)
	case nil: // of passivate and retry
	default:
		b.failf("%s was answered with %T", a, v)
	}
}

// acknowledged takes an Ack.
func (m *model) acknowledged(a *attempt) {
	b := a.book
	if (a.ack.Life == 0 || a.ack.Revision == 0) && a.what != "rebuild" {
		b.failf("%s was answered with %+v", a, a.ack)
	}
	if a.match != (entity.ETag{}) && a.messageID == "" {
		if want := a.match.Revision + 1; a.ack.Life != a.match.Life || b.exact() && a.ack.Revision != want {
			b.failf("%s was accepted with %+v, and only %s was asked for", a, a.ack, a.match)
		}
	}
	switch {
	case a.what == "delete":
		l := b.life(a.ack.Life)
		if a.ack.Revision <= l.floor && l == b.latest {
			b.failf("%s has revision %d, after %d", a, a.ack.Revision, l.floor)
		}
		l.ended = true
	case a.effect != nil:
		m.repeated(a)
		b.acknowledge(a)
	}
}

// showed takes the answer to a note or a peek.
func (m *model) showed(a *attempt, v seen) {
	b := a.book
	if a.effect != nil && !contains(v.Log, a.effect.entries) {
		b.failf("%s was answered with %v", a, v.Log)
	}
	revision := v.Before
	if a.effect != nil {
		if !b.exact() {
			b.sound(v.Log)
			return
		}
		revision++
	}
	if b.exact() && uint64(len(v.Log)) != revision {
		b.failf("%s was answered with %v at revision %d", a, v.Log, revision)
	}
	if v.Life == 0 {
		b.sound(v.Log)
		return
	}
	b.was(v.Life, revision, v.Log)
	if l := b.lives[v.Life]; l == b.latest && !l.ended {
		l.floor = max(l.floor, revision)
		if a.effect != nil {
			a.ack = entity.Ack{Life: v.Life, Revision: revision}
			b.acknowledge(a)
		}
	}
}

// fateOf judges a failure.
func (m *model) fateOf(a *attempt, err error) fate {
	rejected, failed := (*entity.RejectedError)(nil), (*entity.HandlerError)(nil)
	switch {
	case errors.As(err, &rejected):
		if !slices.Contains([]string{"even", "refuse", "fence", "rebuild"}, a.what) {
			a.book.failf("%s was rejected: %v", a, err)
		}
	case errors.As(err, &failed):
		if a.what != "boom" && a.what != "spoil" {
			a.book.failf("the handler of %s failed: %v", a, err)
		}
	case errors.Is(err, persist.ErrUnknown), errors.Is(err, actor.ErrTimeout), errors.Is(err, actor.ErrStopped):
		return unknown
	case errors.Is(err, entity.ErrQuarantined):
		if !m.damaged[a.book.key] {
			a.book.failf("%s met a quarantine: %v", a, err)
		}
	case errors.Is(err, entity.ErrNotFound):
		if a.effect != nil && a.match == (entity.ETag{}) {
			a.book.failf("%s creates, and was refused: %v", a, err)
		}
	case errors.Is(err, entity.ErrStale):
		if a.match == (entity.ETag{}) {
			a.book.failf("%s has no condition, and was refused: %v", a, err)
		}
	case errors.Is(err, entity.ErrBusy), errors.Is(err, actor.ErrMailboxFull), errors.Is(err, pod.ErrStopping),
		errors.Is(err, persist.ErrUnavailable), errors.Is(err, persist.ErrConflict):
	default:
		a.book.failf("%s failed in no known way: %v", a, err)
	}
	return refused
}

// repeated requires that a message with an id, sent again to the life that
// rejected it, is rejected again.
func (m *model) repeated(a *attempt) {
	if a.effect == nil || a.messageID == "" || a.fate != accepted || a.book.everDeleted() || a.book.key.Pod == volatilePod {
		return
	}
	for _, before := range a.effect.attempts {
		rejected := (*entity.RejectedError)(nil)
		if before.n < a.n && before.sentIn != 0 && before.sentIn == a.ack.Life && errors.As(before.err, &rejected) {
			a.book.failf("%s was rejected, and then accepted as %+v", before, a.ack)
		}
	}
}

// logOf returns the log of a state: of a document its members, in no order.
func logOf(pod string, state []byte) ([]string, error) {
	if pod != docPod {
		var l ledger
		err := json.Unmarshal(state, &l)
		return l.Log, err
	}
	doc := map[string]any{}
	if err := json.Unmarshal(state, &doc); err != nil {
		return nil, err
	}
	last, _ := doc["last"].(string)
	if _, is := doc[last]; !is {
		return nil, fmt.Errorf("the document %s does not have its last member", state)
	}
	var log []string
	for k := range doc {
		if k != "last" {
			log = append(log, k)
		}
	}
	slices.Sort(log)
	return log, nil
}

// changeLog returns the log that a change in the journal shows.
func changeLog(c persist.Change) ([]string, error) {
	codec, err := snapshot.CodecByName(c.Codec)
	if err != nil {
		return nil, err
	}
	state, err := codec.ToJSON(c.Data)
	if err != nil {
		return nil, err
	}
	return logOf(c.Key.Pod, state)
}

// undelivered says that a dead letter is a message of SendOnce that should have
// had its effect.
func undelivered(z actor.ZombieMsg) bool {
	u, is := z.Message.Payload.(entity.Undelivered)
	return is && u.Type != "refuse" && !strings.Contains(z.Reason.Error(), "was deleted before it could deliver it")
}
