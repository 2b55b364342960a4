package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"syscall"

	"github.com/twinsrv/twinsrv/client"
)

// The exit codes of the program. Scripts rely on them: they do not change.
const (
	ExitDone        = 0
	ExitFailed      = 1   // and no other code says more
	ExitUsage       = 2   // the command line, a filter, a token: another try needs another one
	ExitNotFound    = 3   // the pod, entity, message, revision or what else was named is not there
	ExitConflict    = 4   // it is not at the revision, or does not meet the condition, that was given
	ExitRejected    = 5   // the entity or its schema refused it
	ExitUnavailable = 6   // nothing was done, and it may work in a moment
	ExitUnknown     = 7   // it may or may not have been done
	ExitPartial     = 8   // a part of it failed, as the messages say; the rest was done
	ExitInterrupted = 130 // by a signal
)

// ExitHelp explains the exit codes, for the program's help.
const ExitHelp = `Exit codes: 0 done; 1 failed; 2 used wrongly (command line, filter, token); 3 not found; ` +
	`4 conflict or condition not met; 5 rejected by the entity or its schema; 6 unavailable, try again; ` +
	`7 outcome unknown; 8 a part failed; 130 interrupted.`

// UsageError is a wrong use of the program: another try needs another command
// line.
type UsageError struct{ error }

// Unwrap returns what is wrong.
func (e UsageError) Unwrap() error { return e.error }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// failure is an error with the exit code that it leads to. One without a text
// is not told: all has been said.
type failure struct {
	code  int
	text  string
	cause error
}

func (e *failure) Error() string { return e.text }

func (e *failure) Unwrap() error { return e.cause }

// Partlyf makes the error of a command that has done its work but for a part.
func Partlyf(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &failure{code: ExitPartial, text: err.Error(), cause: errors.Unwrap(err)}
}

// ErrInterrupted is what a command that a signal has ended fails with.
var ErrInterrupted error = &failure{code: ExitInterrupted, text: "it was interrupted, and is not done"}

// ended is how a command ends that goes on until a signal comes.
func ended() error { return &failure{code: ExitInterrupted} }

// exitPipe is what a shell says of a program that wrote to a pipe that nobody
// reads any more.
const exitPipe = 141

// Quiet makes of the error of a command whose reader has gone away, such as head,
// one without a text. Usually a signal ends the program before.
func Quiet(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) && path.Path == os.Stdout.Name() && errors.Is(err, syscall.EPIPE) {
		return &failure{code: exitPipe, cause: err}
	}
	return err
}

// ExitCode returns the exit code for what a command returned.
func ExitCode(err error) int {
	var usage UsageError
	var f *failure
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &f):
		return f.code
	}
	return ExitFailed
}

// codeOf is the exit code for what a server answered.
func codeOf(e *client.Error) int {
	switch e.Code {
	case client.OutcomeUnknown:
		return ExitUnknown
	case client.Quarantined, client.Internal, client.HandlerFailed:
		return ExitFailed
	case client.RevisionDropped:
		return ExitNotFound
	case client.TypedState:
		return ExitRejected
	case client.Unauthorized, client.ReadOnlyToken, client.BadFilter:
		return ExitUsage // also of a stream that has begun, which has no status any more
	case "":
		return ExitFailed // it is no twinsrv
	}
	if strings.HasPrefix(string(e.Code), "no_such_") {
		return ExitNotFound
	}
	switch e.Status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		return ExitUsage
	case http.StatusNotFound:
		return ExitNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return ExitConflict
	case http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return ExitRejected
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return ExitUnavailable
	}
	return ExitFailed
}
