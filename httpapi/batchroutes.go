package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/twinsrv/twinsrv/actor/patterns"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
)

const (
	// maxBatch is how many messages a batch has at most ...
	maxBatch = 1000
	// ... and maxBatchBody how many times the bytes of another body. Its answers
	// have as many together.
	maxBatchBody = 16
	// maxBatchConditions is how many bytes its different conditions have together.
	// Each of them takes some 300 bytes of memory, until the batch is answered.
	maxBatchConditions = 64 << 10
	// itemAround is how many bytes a message of a batch may have beside its body.
	itemAround = 64 << 10
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

// postBatch sends many messages and answers when all have their answer, or when its
// time is over. They are handled side by side, those to one entity in their order.
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
	ctx, cancel := c.api.pods.System().WithTimeout(c.r.Context(), timeout)
	defer cancel()
	sent := make([]batched, len(items))
	conditions := newBatchConditions()
	for i, item := range items {
		sent[i].err = c.send1(ctx, item, conditions, &sent[i])
	}
	result := BatchResult{Items: make([]BatchAnswer, len(items))}
	room := maxBatchBody * c.api.cfg.MaxBody
	for i := range sent {
		a := sent[i].wait(ctx, c)
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

// send1 sends one message of a batch, unless the batch's time is over.
func (c *call) send1(ctx context.Context, item []byte, conditions *batchConditions, b *batched) error {
	if ctx.Err() != nil {
		return unsent()
	}
	most := c.api.cfg.MaxBody
	if int64(len(item)) > most+itemAround { // it is not even parsed: that takes a multiple of its bytes
		return &http.MaxBytesError{Limit: most}
	}
	var i BatchItem
	if err := c.api.decode(item, &i); err != nil {
		return err
	}
	if int64(len(i.Body)) > most {
		return &http.MaxBytesError{Limit: most}
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
	if b.cond, err = i.If.condition(i.Pod, conditions); err != nil {
		return err
	}
	m.If = b.cond
	if i.ID != nil && m.SetID(*i.ID) != nil {
		return badMessageID()
	}
	b.answer, err = c.api.asks.Start(ctx, p.Ref(i.Name), m, maxTimeout) // ctx ends it before
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return unsent()
	}
	return err
}

// unsent is the answer for a message that the batch's time did not suffice for.
func unsent() error {
	return refuse(CodeTimedOut, "the time of the batch was over before this message was sent: nothing was changed, so send it again, with fewer at a time or a longer timeout")
}

func (b *BatchCondition) condition(pod string, conditions *batchConditions) (cond entity.Condition, err error) {
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
	f, err := conditions.compile(*b.Condition)
	if err != nil {
		return cond, err
	}
	cond.Where = &expression{pod: pod, filter: f}
	return cond, nil
}

// batchConditions are the expressions of a batch, each compiled once.
type batchConditions struct {
	known map[string]batchFilter
	room  int // bytes that more of them may have
}

// batchFilter is an expression, or what is wrong with it.
type batchFilter struct {
	filter *filter.Filter
	err    error
}

func newBatchConditions() *batchConditions {
	return &batchConditions{known: make(map[string]batchFilter), room: maxBatchConditions}
}

// compile compiles an expression as far as there is room for it. One that is too
// long by itself costs nothing, and is refused for that.
func (b *batchConditions) compile(text string) (*filter.Filter, error) {
	known, is := b.known[text]
	switch {
	case is:
		return known.filter, known.err
	case len(text) > filter.MaxText:
	case len(text) > b.room:
		return nil, refuse(CodeTooCostly, fmt.Sprintf("the different conditions of a batch have at most %d bytes together, which those before this one leave no room for: send the message in another batch", maxBatchConditions))
	default:
		b.room -= len(text)
	}
	known.filter, known.err = compiled("condition", text)
	b.known[text] = known
	return known.filter, known.err
}

func (b *batched) wait(ctx context.Context, c *call) BatchAnswer {
	var v any
	if b.err == nil {
		v, b.err = b.answer.Wait(ctx)
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
