package entity

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// Window says how long an entity remembers the answers to messages that came
// with an id. Both bounds hold; in any case the answers have at most 1 MiB, unless
// a single one has more.
type Window struct {
	// Count is how many answers are remembered. 0 means 256, negative none.
	Count int
	// For is how long they are, in the system's time. 0 means 24 hours.
	For time.Duration
}

func (w Window) withDefaults() Window {
	if w.Count == 0 {
		w.Count = 256
	}
	if w.For <= 0 {
		w.For = 24 * time.Hour
	}
	return w
}

const (
	maxMessageID   = 200
	maxAnswerBytes = 1 << 20
	maxReason      = 64 << 10
)

// identified is a message with an id.
type identified struct {
	id string
	v  any
}

// WithID gives a message an id: an entity that has answered a message with this
// id answers it again as it did then, without handling it, as long as its type's
// Repeats says and it is not deleted. A rejection by an entity that does not exist
// leaves nothing behind and is not remembered. An id has 1 to 200 bytes of valid UTF-8
// without U+0000. One that was used for another message is refused with
// ErrReused. Queries and errors that are no rejections are not remembered.
func WithID(id string, msg any) any { return identified{id, msg} }

// SetID is WithID for a bound message. It fails with ErrMalformed.
func (m *Message) SetID(id string) error {
	if id == "" || len(id) > maxMessageID || !utf8.ValidString(id) || slices.Contains([]byte(id), 0) {
		return fmt.Errorf("%w: a message id has 1 to %d bytes of valid UTF-8 without U+0000", ErrMalformed, maxMessageID)
	}
	m.id = id
	return nil
}

// answers are the first answers to messages with ids, oldest first.
type answers struct {
	list  []*remembered
	byID  map[string]*remembered
	bytes int
	count uint64 // numbers them
}

// remembered is the answer to one message.
type remembered struct {
	ID       string    `json:"id"`
	Number   uint64    `json:"number"`
	At       time.Time `json:"at"`
	Digest   uint64    `json:"digest"` // of the message
	Revision uint64    `json:"revision"`
	Created  bool      `json:"created,omitempty"`
	Rejected *string   `json:"rejected,omitempty"`
	Reply    []byte    `json:"reply,omitempty"` // encoded; nil with an Ack or a rejection

	// Of a rejection by the pod's schema.
	Violations []Violation `json:"violations,omitempty"`
	More       int         `json:"more,omitempty"`
}

func (r *remembered) size() int {
	n := 128 + len(r.ID) + len(r.Reply)
	if r.Rejected != nil {
		n += len(*r.Rejected)
	}
	for _, v := range r.Violations {
		n += len(v.Pointer) + len(v.Message)
	}
	return n
}

// digest tells a message from another one under the same id.
func (m *Message) digest(c snapshot.Codec) (uint64, error) {
	body := m.enc
	if body == nil {
		var err error
		if body, err = c.Append(nil, m.body); err != nil {
			return 0, fmt.Errorf("%w: %q: %w", ErrMalformed, m.handler.name, err)
		}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(m.handler.name))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write(body)
	return h.Sum64(), nil
}

// reused says that a message is not the one that an answer was given to, or that
// its digest cannot be told; nil if it is. The code of its type may panic.
func (s *Spec) reused(key persist.Key, m *Message, r *remembered) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = failureOf(key, m.handler.name, panicked(p))
		}
	}()
	digest, err := m.digest(s.codec)
	if err == nil && digest != r.Digest {
		return fmt.Errorf("%s: %w: %q", key, ErrReused, m.id)
	}
	return err
}

// firstAnswer returns the answer that the entity gives a message with this id, nil if
// it handles it.
func (a *activation) firstAnswer(ctx *actor.Context, m *Message) *remembered {
	if !a.spec.remembers(m) {
		return nil
	}
	r := a.mail.answers.get(m.id)
	if r == nil || ctx.Now().Sub(r.At) > a.spec.repeats.For {
		return nil
	}
	return r
}

// repeated answers a message whose id the entity knows, behind what is in
// flight, and reports whether it did.
func (a *activation) repeated(ctx *actor.Context, m *Message, reply *actor.Promise) bool {
	r := a.firstAnswer(ctx, m)
	if r == nil || mutant.On(mutant.RepeatHandledAgain) {
		return false
	}
	e := &entry{reply: reply, message: m, life: a.head.life, revision: r.Revision, creates: r.Created}
	e.err = a.spec.reused(a.key, m, r)
	switch {
	case e.err != nil:
	case len(r.Violations) > 0:
		e.err = &SchemaError{Violations: r.Violations, More: r.More}
	case r.Rejected != nil:
		e.err = &RejectedError{Reason: *r.Rejected}
	case r.Reply != nil:
		e.value = encodedReply{h: m.handler, enc: r.Reply}
	}
	a.push(ctx, e)
	return true
}

// remembers reports whether the answer to a message is kept.
func (s *Spec) remembers(m *Message) bool {
	return m.id != "" && m.op == opHandle && m.handler.kind != KindQuery && s.repeats.Count > 0
}

// question begins to remember the answer to a message, before a handler can
// change what the message holds; nil if the answer is not kept.
func (a *activation) question(c *Context) (*remembered, error) {
	m := c.message
	if !a.spec.remembers(m) {
		return nil, nil
	}
	digest, err := m.digest(a.spec.codec)
	if err != nil {
		return nil, err
	}
	return &remembered{ID: m.id, At: c.actor.Now().UTC(), Digest: digest}, nil
}

// answerOf fills in a turn's answer. One that is no answer is not remembered,
// nor is a rejection too long to be kept.
func (a *activation) answerOf(r *remembered, e *entry, failed error) (*remembered, error) {
	rejected := (*RejectedError)(nil)
	if failed != nil {
		if !errors.As(failed, &rejected) || len(rejected.Reason) > maxReason {
			return nil, failed
		}
		r.Rejected = &rejected.Reason
		if unfit := (*SchemaError)(nil); errors.As(failed, &unfit) {
			r.Violations, r.More = unfit.Violations, unfit.More
		}
		return r, failed
	}
	h := e.message.handler
	v := e.value
	if written, is := v.(jsonReply); is {
		v = written.v
	}
	switch enc, isEncoded := v.(encodedReply); {
	case isEncoded:
		r.Reply = enc.enc
	case h.reply != nil:
		var err error
		if r.Reply, err = a.spec.codec.Append([]byte{}, v); err != nil {
			return nil, fmt.Errorf("the reply cannot be encoded to be remembered: %w", err)
		}
	}
	if most := a.host.MaxState(); len(r.Reply) > most/2 { // as JSON it has 4/3 of its bytes
		return nil, fmt.Errorf("%w: a reply of %d bytes cannot be remembered; ask without an id", persist.ErrInvalid, len(r.Reply))
	}
	return r, nil
}

// remember takes an answer in and returns the rows of that, with those of the
// answers that leave the window.
func (a *activation) remember(r *remembered) []persist.RowOp {
	s := a.mail.answered()
	s.count++
	r.Number = s.count
	rows := []persist.RowOp{}
	if old := s.byID[r.ID]; old != nil { // it has run out
		s.drop(old)
	}
	s.put(r)
	for len(s.list) > a.spec.repeats.Count || s.bytes > maxAnswerBytes && len(s.list) > 1 || r.At.Sub(s.list[0].At) > a.spec.repeats.For {
		old := s.list[0]
		s.drop(old)
		rows = append(rows, persist.RowOp{Kind: answerRows, ID: old.ID, Delete: true})
	}
	if mutant.On(mutant.AnswersNotKept) {
		return rows
	}
	return append(rows, persist.RowOp{Kind: answerRows, ID: r.ID, Value: r.encode()})
}

// encode writes the answer as its row: JSON, which these fields always have.
func (r *remembered) encode() []byte {
	value, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("the answer to %q has no JSON: %v", r.ID, err)) // no field of it can fail
	}
	return value
}

// get returns the answer to a message, nil if it is not remembered.
func (s *answers) get(id string) *remembered {
	if s == nil {
		return nil
	}
	return s.byID[id]
}

func (s *answers) put(r *remembered) {
	if s.byID == nil {
		s.byID = make(map[string]*remembered)
	}
	s.byID[r.ID] = r
	s.list = append(s.list, r)
	s.bytes += r.size()
	s.count = max(s.count, r.Number)
}

func (s *answers) drop(r *remembered) {
	delete(s.byID, r.ID)
	s.bytes -= r.size()
	if s.list[0] == r {
		s.list[0] = nil
		s.list = s.list[1:]
		return
	}
	s.list = slices.DeleteFunc(s.list, func(x *remembered) bool { return x == r })
}

func (s *answers) parse(row persist.Row) error {
	r := &remembered{}
	if err := json.Unmarshal(row.Value, r); err != nil {
		return err
	}
	r.ID = row.ID
	s.put(r)
	return nil
}

// sort puts answers that were read into the order in which they were given.
func (s *answers) sort() {
	if s == nil {
		return
	}
	slices.SortFunc(s.list, func(x, y *remembered) int { return cmp.Compare(x.Number, y.Number) })
}
