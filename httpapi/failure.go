package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// failureOf finds the answer for an error.
//
// What a handler returned is looked at first: a handler's error may wrap
// anything and is still the handler's failure. The sentinels stand in the order
// in which they decide, should an error wrap two of them.
func failureOf(err error) *failure {
	var (
		known    *failure
		handler  *entity.HandlerError
		rejected *entity.RejectedError
		unfit    *entity.SchemaError
		large    *http.MaxBytesError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &handler):
		return &failure{code: CodeHandlerFailed, detail: err.Error(), cause: err}
	case errors.As(err, &unfit):
		f := refuse(CodeSchemaViolation, rejection(unfit))
		f.violations = unfit.Violations
		return f
	case errors.As(err, &rejected):
		return refuse(CodeRejected, rejected.Reason)
	case errors.As(err, &large):
		return refuse(CodeBodyTooLarge, "the body has more than "+strconv.FormatInt(large.Limit, 10)+" bytes")
	}
	for _, k := range sentinels() {
		if errors.Is(err, k.is) {
			f := &failure{code: k.code, detail: k.detail, cause: err}
			if f.detail == "" {
				f.detail = err.Error()
			}
			return f
		}
	}
	return &failure{code: CodeInternal, detail: "the server failed; its log says how", cause: err}
}

// rejection is why a state does not fit, without the word that stands before
// every rejection.
func rejection(err *entity.SchemaError) string { return strings.TrimPrefix(err.Error(), "rejected: ") }

// sentinel is an error that has a code. Without a detail its own text is shown,
// which says nothing about the machine.
type sentinel struct {
	is     error
	code   Code
	detail string
}

func sentinels() []sentinel {
	const unknown = "there was no answer in time: the change may or may not have been made; read the entity again"
	const down = "the store takes nothing at the moment; nothing was changed, so try again"
	const full = "the disk that the store is on is full; nothing was changed, and nothing will be before there is room: make some"
	const stopping = "the server is being stopped"
	return []sentinel{
		{patterns.ErrOverloaded, CodeOverloaded, ""},
		{pod.ErrNoPod, CodeNoSuchPod, ""},
		{pod.ErrStopping, CodeStopping, ""},
		{pod.ErrReadOnly, CodePodReadOnly, ""},
		{pod.ErrExists, CodePodExists, ""},
		{pod.ErrNotEmpty, CodePodNotEmpty, ""},
		{pod.ErrPosition, CodeNoSuchPosition, ""},
		{pod.ErrNoRevision, CodeNoSuchRevision, ""},
		{pod.ErrDropped, CodeRevisionDropped, ""},
		{entity.ErrName, CodeBadName, ""},
		{entity.ErrQuarantined, CodeQuarantined, ""},
		{entity.ErrNotFound, CodeNoSuchEntity, ""},
		{entity.ErrUnknownMessage, CodeNoSuchMessage, ""},
		{entity.ErrUnknownField, CodeUnknownField, ""},
		{entity.ErrMalformed, CodeMalformed, ""},
		{entity.ErrDefinition, CodeBadDefinition, ""},
		{entity.ErrStale, CodeConditionFailed, ""},
		{entity.ErrCondition, CodeConditionFailed, ""},
		{filter.ErrTooCostly, CodeTooCostly, ""},
		{entity.ErrReused, CodeMessageIDReused, ""},
		{entity.ErrBusy, CodeBusy, ""},
		{actor.ErrMailboxFull, CodeMailboxFull, ""},
		{actor.ErrTimeout, CodeOutcomeUnknown, unknown},
		{patterns.ErrCancelled, CodeOutcomeUnknown, unknown},
		{persist.ErrNoRoom, CodeStoreUnavailable, full},
		{persist.ErrUnavailable, CodeStoreUnavailable, down},
		{persist.ErrUnknown, CodeOutcomeUnknown, unknown},
		{persist.ErrInvalid, CodeStoreRefused, ""},
		{persist.ErrConflict, CodeConflict, ""},
		{actor.ErrStopped, CodeStopping, stopping},
		{context.DeadlineExceeded, CodeOutcomeUnknown, unknown},
		{context.Canceled, CodeOutcomeUnknown, unknown},
	}
}
