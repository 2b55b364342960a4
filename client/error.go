package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Code says what went wrong, for programs. It is itself an error, which an Error
// of this code is: errors.Is(err, client.NoSuchEntity).
type Code string

// Error returns the code.
func (c Code) Error() string { return string(c) }

// The codes that programs look at most. The server's documentation has all.
const (
	Malformed        Code = "malformed"
	BadFilter        Code = "bad_filter"
	Unauthorized     Code = "unauthorized"
	ReadOnlyToken    Code = "read_only_token"
	NoSuchPod        Code = "no_such_pod"
	NoSuchEntity     Code = "no_such_entity"
	NoSuchMessage    Code = "no_such_message"
	NoSuchValue      Code = "no_such_value"
	NoSuchRevision   Code = "no_such_revision"
	NoSuchFuture     Code = "no_such_future"
	NotQuarantined   Code = "not_quarantined"
	TypedState       Code = "typed_state"
	PodExists        Code = "pod_exists"
	PodNotEmpty      Code = "pod_not_empty"
	PodReadOnly      Code = "pod_read_only"
	Conflict         Code = "conflict"
	RevisionDropped  Code = "revision_dropped"
	StaleRevision    Code = "stale_revision"
	ConditionFailed  Code = "condition_failed"
	BodyTooLarge     Code = "body_too_large"
	UnknownField     Code = "unknown_field"
	BadDefinition    Code = "bad_definition"
	SchemaViolation  Code = "schema_violation"
	TooCostly        Code = "too_costly"
	Rejected         Code = "rejected"
	StoreRefused     Code = "store_refused"
	MessageIDReused  Code = "message_id_reused"
	MailboxFull      Code = "mailbox_full"
	TooManyWatchers  Code = "too_many_watchers"
	HandlerFailed    Code = "handler_failed"
	Internal         Code = "internal"
	NoBackup         Code = "no_backup"
	StoreUnavailable Code = "store_unavailable"
	Quarantined      Code = "quarantined"
	NotReady         Code = "not_ready"
	Stopping         Code = "stopping"
	Overloaded       Code = "overloaded"
	Busy             Code = "busy"
	OutcomeUnknown   Code = "outcome_unknown" // the change may or may not have been made
)

// Error is a request that failed. It is the error of its Code.
type Error struct {
	// Status is the answer's; 0 when there was none.
	Status int
	// Code is empty when the answer came from something else than a twinsrv.
	Code Code
	// Detail says what went wrong, and what to do, for people.
	Detail string
	// Line and Column say where in a filter or condition the fault is, from 1.
	Line, Column int
	// Violations are the places where a state does not fit its pod's schema.
	Violations []Violation
	// RetryAfter is how long the server wants not to be asked again.
	RetryAfter time.Duration

	request string // method and path; empty for what became of a part of a request
	cause   error
}

// Violation is one place where a state does not fit a schema.
type Violation struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

func (e *Error) Error() string {
	text := string(e.Code)
	switch {
	case text == "" && e.Status != 0:
		text = e.Detail + ", which is not how a twinsrv server answers; is the address right?"
	case e.Detail != "":
		text += ": " + e.Detail
	}
	if e.Status != 0 {
		text = strconv.Itoa(e.Status) + " " + text
	}
	if e.request != "" {
		text = e.request + ": " + text
	}
	return text
}

// Is reports whether target is the error's Code.
func (e *Error) Is(target error) bool {
	code, is := target.(Code)
	return is && code == e.Code && code != ""
}

// Unwrap returns what kept the answer away, nil if there was an answer.
func (e *Error) Unwrap() error { return e.cause }

// problem is the body of an error of the server.
type problem struct {
	Title      string      `json:"title"`
	Status     int         `json:"status"`
	Code       Code        `json:"code"`
	Detail     string      `json:"detail"`
	Line       int         `json:"line"`
	Column     int         `json:"column"`
	Violations []Violation `json:"violations"`
}

func (p *problem) failure() *Error {
	return &Error{Status: p.Status, Code: p.Code, Detail: p.Detail, Line: p.Line, Column: p.Column, Violations: p.Violations}
}

// maxProblem is how much of an error's body is read.
const maxProblem = 1 << 20

// failed makes an error of an answer that is one.
func (r *request) failed(resp *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem)) // what there is of it
	var p problem
	e := &Error{Detail: http.StatusText(resp.StatusCode)}
	if json.Unmarshal(body, &p) == nil && p.Code != "" {
		e = p.failure()
	}
	e.Status, e.request = resp.StatusCode, r.String()
	if seconds, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 20); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	if e.Code == "" && r.writes() && (e.Status == http.StatusBadGateway || e.Status == http.StatusServiceUnavailable || e.Status == http.StatusGatewayTimeout) {
		e.Code = OutcomeUnknown // a proxy's word, which does not say whether the server had the request
	}
	return e
}

// lost makes an error of a request that has no answer.
func (r *request) lost(err error) error {
	var dial *net.OpError
	if !r.writes() || errors.As(err, &dial) && dial.Op == "dial" {
		return fmt.Errorf("%s: %w", r, err)
	}
	return &Error{Code: OutcomeUnknown, Detail: "there was no answer: " + err.Error(), request: r.String(), cause: err}
}
