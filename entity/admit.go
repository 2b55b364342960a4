package entity

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// Admit returns a message that asks an entity whether it would handle another
// message if that came now, behind all that is in its mailbox. The answer is an
// error where the entity would refuse it, that error. It changes nothing.
func Admit(m *Message) *Message { return &Message{op: opAdmit, about: m} }

// Admit says why an entity would refuse a message before it begins to handle it,
// with the error by which it would; nil if it would not, or if the entity has
// answered it under its id. The entity is as a modern record says; one of
// revision 0 does not exist. Its state may have maxState bytes.
//
// It judges the message's life, the creation policy and the conditions, and of a
// message to a document also what would become of that: a state that does not fit
// the schema, or a pointer at which nothing stands. What a typed handler says,
// nobody knows before it runs.
func (s *Spec) Admit(ctx context.Context, store persist.PersistenceService, key persist.Key, r *snapshot.Record, m *Message, maxState int, now time.Time) error {
	h := head{life: r.Life, revision: r.Revision, changed: r.Changed, enc: r.State}
	if !s.remembers(m) || r.Revision == 0 {
		return s.judge(key, &h, m, maxState)
	}
	rows, err := readRows(ctx, store, key)
	if err != nil {
		return fmt.Errorf("%s: read its answers: %w", key, err)
	}
	mail, err := parseMail(rows)
	if err != nil {
		return err
	}
	if first := mail.answers.get(m.id); first != nil && !mutant.On(mutant.AdmitForgetsAnswers) && now.Sub(first.At) <= s.repeats.For {
		return s.reused(key, m, first)
	}
	return s.judge(key, &h, m, maxState)
}

// judge says why an entity at a head would refuse a message, or nil.
func (s *Spec) judge(key persist.Key, h *head, m *Message, most int) error {
	switch {
	case m.deletes() && h.revision == 0:
		return fmt.Errorf("%w: %s", ErrNotFound, key)
	case m.op == opDelete:
		return s.meets(key, h, &m.If)
	case m.op != opHandle:
		return nil
	}
	if err := s.admits(key, h, m); err != nil || s.Kind != KindDocument {
		return err
	}
	if err := s.try(h, m, most); err != nil {
		return failureOf(key, m.handler.name, err)
	}
	return nil
}

// try applies a message to a copy of the document at a head. The message is
// copied, too, since it becomes part of the document.
func (s *Spec) try(h *head, m *Message, most int) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	body := m.enc
	if body == nil {
		if body, err = s.codec.Append(nil, m.body); err != nil {
			return err
		}
	}
	message := reflect.New(m.handler.message)
	if err := s.codec.Decode(body, message.Interface()); err != nil {
		return err
	}
	o := Object{}
	if h.revision > 0 {
		if err := s.codec.Decode(h.enc, &o); err != nil {
			return err
		}
	}
	if err := o.apply(message.Elem().Interface(), most); err != nil {
		return err
	}
	enc, err := s.codec.Append(nil, &o)
	if err != nil {
		return fmt.Errorf("the state cannot be encoded: %w", err)
	}
	return s.fits(h, m, enc, &o, most)
}

// answerAdmit answers a message of Admit, behind what is in flight.
func (a *activation) answerAdmit(ctx *actor.Context, m *Message, reply *actor.Promise) {
	e, about := &entry{reply: reply, message: m, silent: true, life: a.head.life, revision: a.head.revision}, m.about
	switch {
	case a.phase == quarantined:
		if !about.Frees() {
			e.err = a.reason
		}
	case a.firstAnswer(ctx, about) != nil && !mutant.On(mutant.AdmitForgetsAnswers):
		e.err = a.spec.reused(a.key, about, a.firstAnswer(ctx, about))
	default:
		e.err = a.spec.judge(a.key, &a.head, about, a.host.MaxState())
	}
	a.push(ctx, e)
}
