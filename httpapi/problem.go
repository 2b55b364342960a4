package httpapi

import (
	"encoding/json"
	"net/http"
	"strconv"
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
}

// problemType is the media type of a Problem.
const problemType = "application/problem+json"

// failure is an error that knows its answer.
type failure struct {
	code   Code
	detail string
	header [2]string // one more header, if its name is not empty
	cause  error     // for the log, if it says more than detail
}

func (f *failure) Error() string { return string(f.code) + ": " + f.detail }

func (f *failure) Unwrap() error { return f.cause }

func refuse(code Code, detail string) *failure { return &failure{code: code, detail: detail} }

// write sends the failure as a problem.
func (f *failure) write(w http.ResponseWriter) {
	h := w.Header()
	if f.header[0] != "" {
		h.Set(f.header[0], f.header[1])
	}
	if f.code.retry() {
		h.Set("Retry-After", "1")
	}
	status := f.code.Status()
	// Strings and numbers always marshal; invalid UTF-8 is replaced.
	body, _ := json.Marshal(Problem{Title: http.StatusText(status), Status: status, Code: f.code, Detail: f.detail})
	h.Del("ETag")
	h.Set("Content-Type", problemType)
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client is gone if this fails
}
