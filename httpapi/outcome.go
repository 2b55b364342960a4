package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/twinsrv/twinsrv/entity"
)

// outcome is an entity's answer to a message in the form in which it is sent: at
// once, later from a future, or as an item of a batch.
type outcome struct {
	etag   string // quoted; empty if there is no entity
	body   json.RawMessage
	failed *failure // in place of all else
}

// outcomeOf makes an entity's answer to a message with a condition one that can
// be sent.
func outcomeOf(cond entity.Condition, v any, err error) (o outcome) {
	// An error's Error is the user's, and nobody else looks after the goroutines of
	// futures.
	defer func() {
		if p := recover(); p != nil {
			o = outcome{failed: &failure{
				code: CodeHandlerFailed, cause: fmt.Errorf("panic: %v", p),
				detail: fmt.Sprintf("the handler failed, and what its error says cannot be told: that panicked: %v", p),
			}}
		}
	}()
	if err != nil {
		return outcome{failed: failureOf(unmet(cond, err))}
	}
	switch v := v.(type) {
	case entity.JSONReply:
		if o.body = v.Body; v.Tag != (entity.ETag{}) {
			o.etag = quoted(v.Tag)
		}
	case entity.Ack:
		o.etag = quoted(entity.ETag{Life: v.Life, Revision: v.Revision})
		o.body, err = encode(v)
	default: // parse asks for one of the two
		err = fmt.Errorf("an entity answered with a %T", v)
	}
	if err != nil {
		return outcome{failed: failureOf(err)}
	}
	return o
}

// size is about how many bytes the outcome has.
func (o *outcome) size() int {
	if o.failed == nil {
		return len(o.body)
	}
	return len(o.failed.detail) + sizeOf(o.failed.violations)
}

func sizeOf(violations []entity.Violation) (size int) {
	for _, v := range violations {
		size += len(v.Pointer) + len(v.Message)
	}
	return size
}

// answer sends the outcome as the request's own answer.
func (c *call) answer(o outcome) error {
	if o.failed != nil {
		return o.failed
	}
	if o.etag != "" {
		c.w.Header().Set("ETag", o.etag)
	}
	return c.raw(http.StatusOK, o.body)
}
