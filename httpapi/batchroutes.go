package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/twinsrv/twinsrv/actor/patterns"
	"github.com/twinsrv/twinsrv/entity"
)

const (
	// maxBatch is how many messages a batch has at most ...
	maxBatch = 1000
	// ... and maxBatchBody how many times the bytes of another body. Its answers
	// have as many together.
	maxBatchBody = 16
)

// BatchItem is one message of a batch.
type BatchItem struct {
	Pod  string `json:"pod"`
	Name string `json:"name"`
	// Type is the message's name.
	Type string `json:"type"`
	// Body is the message's body; left out it stands for a message without
	// fields.
	Body json.RawMessage `json:"body,omitempty"`
	// If says on what the message is conditional.
	If *BatchCondition `json:"if,omitempty"`
	// ID is what a request has as its Idempotency-Key.
	ID *string `json:"id,omitempty"`
}

// BatchCondition says on what a message of a batch is conditional. The texts are
// what a request has.
type BatchCondition struct {
	Match     *string `json:"match,omitempty" doc:"as If-Match"`
	NoneMatch *string `json:"noneMatch,omitempty" doc:"as If-None-Match"`
	Condition *string `json:"condition,omitempty" doc:"an expression in CEL"`
}

// BatchResult says what became of the messages, in their order.
type BatchResult struct {
	Items  []BatchAnswer `json:"items"`
	Failed int           `json:"failed"`
}

// BatchAnswer is the answer that a message would have had as a request of its
// own.
type BatchAnswer struct {
	Status  int             `json:"status"`
	ETag    string          `json:"etag,omitempty"`
	Body    json.RawMessage `json:"body,omitempty"`
	Problem *Problem        `json:"problem,omitempty"`
	// Omitted says that the body, or the detail of the problem, is left out, since
	// the answers before it have as many bytes as those of a batch may have. What
	// the message did is done; one with an id can be sent again for its answer.
	Omitted bool `json:"omitted,omitempty"`
}

// postBatch sends many messages and answers when all have their answer. They are
// handled side by side, those to one entity in their order.
func postBatch(c *call) error {
	timeout, err := c.timeout()
	if err != nil {
		return err
	}
	data, err := c.bodyUpTo(maxBatchBody*c.api.cfg.MaxBody, jsonType)
	if err != nil {
		return err
	}
	items, err := batchItems(data)
	if err != nil {
		return err
	}
	sent := make([]batched, len(items))
	for i, item := range items {
		sent[i].err = c.send1(item, timeout, &sent[i])
	}
	result := BatchResult{Items: make([]BatchAnswer, len(items))}
	room := maxBatchBody * c.api.cfg.MaxBody
	for i := range sent {
		a := sent[i].wait(c)
		if room -= a.size(); room < 0 {
			a.omit()
		}
		result.Items[i] = a
		if result.Items[i].Problem != nil {
			result.Failed++
		}
	}
	return c.json(http.StatusOK, result)
}

// size is about how many bytes an answer has.
func (a *BatchAnswer) size() int64 {
	size := len(a.Body)
	if a.Problem != nil {
		size += len(a.Problem.Detail) + sizeOf(a.Problem.Violations)
	}
	return int64(size)
}

// omit leaves out what has a size.
func (a *BatchAnswer) omit() {
	a.Body, a.Omitted = nil, true
	if a.Problem != nil {
		a.Problem.Detail, a.Problem.Violations = "", nil
	}
}

// batchItems takes a batch's body apart, as far as it may be.
func batchItems(data []byte) (items []json.RawMessage, err error) {
	in := json.NewDecoder(bytes.NewReader(data))
	bad := func(why string) error {
		return refuse(CodeMalformed, "the body is not a JSON array of messages: "+why)
	}
	if open, err := in.Token(); err != nil {
		return nil, bad(err.Error())
	} else if open != json.Delim('[') {
		return nil, bad("it does not begin with [")
	}
	for in.More() {
		if len(items) == maxBatch {
			return nil, refuse(CodeMalformed, fmt.Sprintf("a batch has at most %d messages, and this one has more", maxBatch))
		}
		var item json.RawMessage
		if err := in.Decode(&item); err != nil {
			return nil, bad(err.Error())
		}
		items = append(items, item)
	}
	if _, err := in.Token(); err != nil {
		return nil, bad(err.Error())
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, bad("something stands behind it")
	}
	return items, nil
}

// batched is a message of a batch on its way.
type batched struct {
	cond   entity.Condition
	answer *patterns.Future
	err    error // it was not sent
}

// send1 sends one message of a batch.
func (c *call) send1(item []byte, timeout time.Duration, b *batched) error {
	var i BatchItem
	if err := c.api.decode(item, &i); err != nil {
		return err
	}
	p, err := c.podNamed(i.Pod)
	if err != nil {
		return err
	}
	if err := (target{entity: i.Name}).checkEntity(); err != nil {
		return err
	}
	spec := p.Spec()
	if spec == nil {
		return readOnly(p)
	}
	m, err := c.api.parse(spec, i.Type, i.Body)
	if err != nil {
		return err
	}
	if b.cond, err = i.If.condition(i.Pod); err != nil {
		return err
	}
	m.If = b.cond
	if i.ID != nil && m.SetID(*i.ID) != nil {
		return badMessageID()
	}
	b.answer, err = c.api.asks.Start(c.r.Context(), p.Ref(i.Name), m, timeout)
	return err
}

func (b *BatchCondition) condition(pod string) (cond entity.Condition, err error) {
	if b == nil {
		return cond, nil
	}
	h := http.Header{}
	if b.Match != nil {
		h.Set("If-Match", *b.Match)
	}
	if b.NoneMatch != nil {
		h.Set("If-None-Match", *b.NoneMatch)
	}
	if cond, err = conditionOf(h); err != nil || b.Condition == nil {
		return cond, err
	}
	cond.Where, err = predicateOf(pod, *b.Condition)
	return cond, err
}

func (b *batched) wait(c *call) BatchAnswer {
	var v any
	if b.err == nil {
		v, b.err = b.answer.Wait(c.r.Context())
	}
	c.api.metrics.asked(b.err)
	o := outcomeOf(b.cond, v, b.err)
	if o.failed != nil {
		c.api.note(c.r, o.failed)
		p := o.failed.problem()
		return BatchAnswer{Status: p.Status, Problem: &p}
	}
	return BatchAnswer{Status: http.StatusOK, ETag: o.etag, Body: o.body}
}
