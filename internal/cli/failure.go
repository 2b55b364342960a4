package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/twinsrv/twinsrv/client"
)

// Explain words what a request failed with for people, says what to do next, and
// gives it its exit code. Errors that have both, and nil, stay what they are.
func (s *Session) Explain(ctx context.Context, err error) error {
	var usage UsageError
	var f *failure
	if err == nil || errors.As(err, &usage) || errors.As(err, &f) {
		return err
	}
	var local *fs.PathError
	if errors.As(err, &local) {
		return unwritten(local, err)
	}
	var answer *client.Error
	if errors.As(err, &answer) && answer.Status != 0 {
		return s.refused(answer)
	}
	return s.unanswered(ctx, err)
}

// unwritten tells of a file or an output here that failed, whatever was done at
// the server before.
func unwritten(local *fs.PathError, err error) error {
	if local.Path != os.Stdout.Name() || errors.Is(err, syscall.EPIPE) {
		return err
	}
	return &failure{
		code: ExitFailed, cause: err,
		text: fmt.Sprintf("the output cannot be written: %v; what the command changes at the server is done all the same", local.Err),
	}
}

// refused is the server's error as it words it.
func (s *Session) refused(e *client.Error) error {
	f := &failure{code: codeOf(e), cause: e}
	if e.Code == "" {
		f.text = fmt.Sprintf("%s answered %d %s, which is not how a twinsrv server does it; is the address right?", s.shown, e.Status, http.StatusText(e.Status))
		return f
	}
	f.text = "the server refused it: " + refusal(e)
	if e.Code == client.OutcomeUnknown {
		f.text = "the outcome is unknown: " + refusal(e)
	}
	if next := advice(e.Code); next != "" {
		f.text += "; " + next
	}
	return f
}

// refusal is a server's error in a line.
func refusal(e *client.Error) string {
	return fmt.Sprintf("%s (%s)", Printable(e.Detail), e.Code)
}

// advice is what to do next.
func advice(code client.Code) string {
	switch code {
	case client.StoreUnavailable, client.Overloaded, client.Busy, client.MailboxFull, client.Stopping, client.NotReady, client.TooManyWatchers:
		return "try again in a moment"
	case client.Unauthorized:
		return "give a token in a file (--token-file) or in the environment variable TWINSRV_TOKEN"
	case client.ReadOnlyToken:
		return "give a token that may write in a file (--token-file) or in the environment variable TWINSRV_TOKEN"
	case "forbidden_host":
		return "use an address that the server is told by --listen"
	case client.NoSuchPod:
		return "`twinsrv pods` lists those that are there"
	case client.NoSuchEntity:
		return "`twinsrv ls POD` lists those that are there"
	case client.NoSuchMessage:
		return "`twinsrv pods POD` lists those that are there"
	case client.NoSuchFuture:
		return "answers are kept for 15 minutes, and not over a restart of the server"
	case client.NoSuchRevision, client.RevisionDropped:
		return "`twinsrv history` lists those that are kept"
	case "no_such_position":
		return "leave --from out to begin with what comes next, or give --from 0 for all that is kept"
	case client.StaleRevision:
		return "read it again with `twinsrv get`, and use the revision that it is at"
	case client.PodNotEmpty:
		return "--cascade deletes them with it"
	case client.TypedState:
		return "send a message; `twinsrv pods POD` lists them"
	case client.Quarantined:
		return "`twinsrv quarantine show` says more"
	case client.OutcomeUnknown:
		return "read it, or send it again with the same --id if it had one"
	}
	return ""
}

// unanswered says what to do when there is no answer. Causes are told without
// the URL, which may hold a password.
func (s *Session) unanswered(ctx context.Context, err error) error {
	f := &failure{code: ExitUnavailable, cause: err}
	var dial *net.OpError
	var syntax *json.SyntaxError
	var shape *json.UnmarshalTypeError
	var sent *client.Error
	wrote := errors.As(err, &sent) && sent.Code == client.OutcomeUnknown
	switch {
	case errors.As(err, &sent) && !wrote && sent.Code != "":
		f.code, f.text = codeOf(sent), refusal(sent) // of one thing among several
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		if !wrote {
			return ErrInterrupted
		}
		f.code, f.text = ExitInterrupted, "it was interrupted, and may or may not have been done"
	case errors.Is(err, context.DeadlineExceeded):
		f.text = fmt.Sprintf("%s did not answer within %v; --timeout gives it longer", s.shown, s.timeout)
	case errors.As(err, &dial) && dial.Op == "dial":
		f.text = fmt.Sprintf("no server answers at %s: %v; start it, or say where it is with --server", s.shown, dial)
	case errors.As(err, &syntax), errors.As(err, &shape):
		f.code, f.text = ExitFailed, fmt.Sprintf("%s does not answer as a twinsrv server does; is the address right? %s", s.shown, Printable(err.Error()))
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		f.code, f.text = ExitFailed, fmt.Sprintf("%s speaks http, not https; say so with --server", s.shown)
	default:
		var lost interface{ Timeout() bool } // what the network did
		if !wrote && !errors.As(err, &lost) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		f.text = fmt.Sprintf("%s did not answer, or not to the end: %s", s.shown, Printable(rootCause(err).Error()))
	}
	if wrote && f.code == ExitUnavailable {
		f.code = ExitUnknown
		f.text += "; it may or may not have been done: " + advice(client.OutcomeUnknown)
	}
	return f
}

// rootCause is the error at the end of a chain.
func rootCause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
