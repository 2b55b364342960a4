package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/twinsrv/twinsrv/actor/patterns"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// call is one request on its way through an operation.
type call struct {
	api *API
	op  *operation
	w   http.ResponseWriter
	r   *http.Request
	target
	empty bool // the body was read, and has nothing in it
}

// thePod returns the pod that the path names.
func (c *call) thePod() (*pod.Pod, error) {
	if err := c.checkPod(); err != nil {
		return nil, err
	}
	return c.api.pods.Pod(c.pod)
}

// theEntity returns the pod that the path names, having checked the entity's
// name.
func (c *call) theEntity() (*pod.Pod, error) {
	p, err := c.thePod()
	if err != nil {
		return nil, err
	}
	return p, c.checkEntity()
}

// ask sends a message to the entity that the path names and waits for the
// answer. It gives up when the client has.
func (c *call) ask(p *pod.Pod, m *entity.Message, timeout time.Duration) (any, error) {
	ctx := c.r.Context()
	err := ctx.Err()
	var f *patterns.Future
	if err == nil { // Wait looks at the request's end; the future need not as well
		f, err = c.api.asks.Start(context.WithoutCancel(ctx), p.Ref(c.entity), m, timeout)
	}
	var v any
	if err == nil {
		defer f.Cancel()
		v, err = f.Wait(ctx)
	}
	c.api.metrics.asked(err)
	return v, err
}

// askAck is ask for messages that are answered with an Ack.
func (c *call) askAck(p *pod.Pod, m *entity.Message, timeout time.Duration) (entity.Ack, error) {
	v, err := c.ask(p, m, timeout)
	if err != nil {
		return entity.Ack{}, err
	}
	ack, ok := v.(entity.Ack)
	if !ok {
		return ack, fmt.Errorf("an acknowledgement was expected and a %T came", v)
	}
	return ack, nil
}

// acknowledge answers with an Ack and its ETag.
func (c *call) acknowledge(status int, ack entity.Ack) error {
	c.w.Header().Set("ETag", quoted(entity.ETag{Life: ack.Life, Revision: ack.Revision}))
	return c.json(status, ack)
}

// fresh answers a read whose conditions say that the client has the revision
// already, or another than it asked for; it says whether it did.
func (c *call) fresh(v *pod.View) (answered bool, err error) {
	c.w.Header().Set("ETag", quoted(v.ETag()))
	c.w.Header().Set("Cache-Control", "no-cache")
	cond, err := conditionOf(c.r.Header)
	if err != nil {
		return true, err
	}
	match := entity.Condition{Match: cond.Match, Exists: cond.Exists}
	if err := match.Check(v.Life, v.Revision); err != nil {
		return true, unmet(match, err)
	}
	none := entity.Condition{NoneMatch: cond.NoneMatch, Absent: cond.Absent}
	if none.Check(v.Life, v.Revision) != nil {
		c.w.WriteHeader(http.StatusNotModified)
		return true, nil
	}
	return false, nil
}

// json answers with a value. Nothing is sent when it cannot be encoded.
func (c *call) json(status int, v any) error {
	data, err := encode(v)
	if err != nil {
		return err
	}
	return c.raw(status, data)
}

// raw answers with JSON as it is.
func (c *call) raw(status int, data []byte) error {
	h := c.w.Header()
	h.Set("Content-Type", jsonType)
	h.Set("Content-Length", strconv.Itoa(len(data)))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(data) // the client is gone if this fails
	return nil
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write the answer as JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// serve runs an operation and answers with its failure, if it has one.
func (a *API) serve(op *operation, w http.ResponseWriter, r *http.Request) {
	c := &call{api: a, op: op, w: w, r: r}
	if at, ok := r.Context().Value(routeKey{}).(*route); ok {
		c.target = at.target
	}
	err := a.authorize(op, r)
	if err == nil {
		_, err = c.query()
	}
	if err == nil {
		err = c.untaken()
	}
	if err == nil {
		err = op.handle(c)
	}
	if err != nil {
		f := failureOf(err)
		switch {
		case c.empty && errors.Is(f, entity.ErrMalformed):
			f = refuse(CodeMalformed, "the body is empty, and must be JSON")
		case op.writes():
		case f.code == CodeOutcomeUnknown:
			f = refuse(CodeTimedOut, "there was no answer in time; nothing was changed")
		case f.code == CodeStoreUnavailable && errors.Is(f, persist.ErrUnavailable):
			f.detail = "the store cannot be read at the moment; try again"
		}
		a.note(r, f)
		f.write(w)
	}
}

// untaken refuses a request to change something with a header that the operation
// does not heed, and that somebody may rely on: a repeated deletion with a key of
// its own would end the life that has begun since.
func (c *call) untaken() error {
	if !c.op.writes() {
		return nil
	}
	has := func(header string) bool { return len(c.r.Header.Values(header)) > 0 } // empty ones come from scripts
	if !c.op.identified && has(messageIDHeader) {
		return refuse(CodeBadMessageID, "this operation takes no "+messageIDHeader+"; for a deletion, If-Match names the revision that it is for")
	}
	if !c.op.conditional && (has("If-Match") || has("If-None-Match")) {
		return refuse(CodeBadCondition, "this operation takes neither If-Match nor If-None-Match")
	}
	if c.r.Method == http.MethodDelete && c.r.ContentLength != 0 { // of unknown length, or some
		if n, _ := io.ReadFull(c.r.Body, make([]byte, 1)); n > 0 {
			return refuse(CodeMalformed, "a DELETE has no body; conditions stand in If-Match and ?condition=")
		}
	}
	return nil
}

// note logs what somebody should look at. Requests that were wrong are none of
// it, and what the store does is logged where it happens.
func (a *API) note(r *http.Request, f *failure) {
	switch f.code {
	case CodeInternal:
		a.log.ErrorContext(r.Context(), "a request failed", "method", r.Method, "path", r.RequestURI, "error", errors.Unwrap(f))
	case CodeHandlerFailed:
		a.log.WarnContext(r.Context(), "a handler failed", "method", r.Method, "path", r.RequestURI, "error", errors.Unwrap(f))
	}
}
