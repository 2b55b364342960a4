package httpapi

import (
	"net/http"
	"strconv"

	"github.com/twinsrv/twinsrv/entity"
)

// Problem is the body of every error (RFC 9457).
type Problem struct {
	// Title is the text of the status.
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Code says what went wrong, for programs.
	Code Code `json:"code"`
	// Detail says what went wrong with this request, and what to do, for people.
	Detail string `json:"detail,omitempty"`
	// Line and Column say where in a filter or condition the fault is, from 1.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Violations are the places where a state or a message does not fit its JSON
	// Schema.
	Violations []entity.Violation `json:"violations,omitempty"`
}

// problemType is the media type of a Problem.
const problemType = "application/problem+json"

// failure is an error that knows its answer.
type failure struct {
	code   Code
	detail string
	header [2]string // one more header, if its name is not empty
	cause  error     // for the log, if it says more than detail

	line, column int
	violations   []entity.Violation
}

func (f *failure) Error() string { return string(f.code) + ": " + f.detail }

func (f *failure) Unwrap() error { return f.cause }

func refuse(code Code, detail string) *failure { return &failure{code: code, detail: detail} }

// problem is the failure's body.
func (f *failure) problem() Problem {
	status := f.code.Status()
	return Problem{
		Title: http.StatusText(status), Status: status, Code: f.code, Detail: f.detail,
		Line: f.line, Column: f.column, Violations: f.violations,
	}
}

// write sends the failure as a problem.
func (f *failure) write(w http.ResponseWriter) {
	h := w.Header()
	if f.header[0] != "" {
		h.Set(f.header[0], f.header[1])
	}
	if f.code.retry() {
		h.Set("Retry-After", "1")
	}
	// Strings and numbers always marshal; invalid UTF-8 is replaced.
	body, _ := encode(f.problem())
	h.Del("ETag")
	h.Set("Content-Type", problemType)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(f.code.Status())
	_, _ = w.Write(body) // the client is gone if this fails
}
