package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/client"
)

type answerCommand struct {
	ID     string `arg:"" help:"The id that send --async printed, or the path."`
	Cancel bool   `help:"Wait for it no more. The message may be handled all the same; an answer that is there is forgotten."`
	ServerFlags
	OutputFlag
}

// futures is where a server has its futures.
const futures = "/v1/futures/"

// Help says more than the list of flags.
func (answerCommand) Help() string {
	return "It waits until the answer is there, up to --timeout, and then prints it and ends as send would have done without --async. " +
		"With 7 there is none yet. Answers are kept for 15 minutes, and do not outlive the server.\n\n" +
		Examples(
			"twinsrv answer 4J5Q3ZV2K6XW7N8M9P0R1S2T3U",
			`twinsrv answer "$(twinsrv send rooms tower-3-21 merge people:=0 --async -o json | jq -r .future)"`,
			"twinsrv answer 4J5Q3ZV2K6XW7N8M9P0R1S2T3U --timeout 5m",
			"twinsrv answer 4J5Q3ZV2K6XW7N8M9P0R1S2T3U --cancel",
		)
}

// Run waits for the answer, or ends the waiting.
func (c *answerCommand) Run(ctx context.Context) error {
	id := strings.TrimPrefix(c.ID, futures)
	if id == "" {
		return Usagef("the id of an answer is not empty; `twinsrv send --async` prints it")
	}
	return c.do(ctx, func(ctx context.Context, s *Session) error {
		if c.Cancel {
			return c.cancel(ctx, s.Future(id))
		}
		state, err := c.await(ctx, s.Future(id))
		switch {
		case err != nil:
			return err
		case state.Status == "pending":
			return &failure{code: ExitUnknown, text: fmt.Sprintf("there is no answer yet; ask again, or wait longer than %v with --timeout", c.Timeout)}
		case state.Status == "cancelled", state.Status == "expired":
			return &failure{code: ExitUnknown, text: fmt.Sprintf("the outcome is unknown: the waiting for the answer of %s is %s", entityArgs{state.Pod, state.Name}, state.Status)}
		case state.Err != nil:
			return state.Err
		}
		return c.Print(state.Result, func(w io.Writer) error { return printAnswer(w, state.Result) })
	})
}

// await returns what has become of the future when it has ended, or when the time
// is over.
func (c *answerCommand) await(ctx context.Context, f client.Future) (state client.FutureState, err error) {
	for begun := time.Now(); ; {
		wait := maxAsk
		if c.Timeout > 0 {
			wait = min(wait, c.Timeout-time.Since(begun))
		}
		if state, err = f.State(ctx, max(wait, time.Millisecond)); err != nil || state.Status != "pending" {
			return state, err
		}
		if c.Timeout > 0 && time.Since(begun) >= c.Timeout {
			return state, nil
		}
	}
}

func (c *answerCommand) cancel(ctx context.Context, f client.Future) error {
	if err := f.Cancel(ctx); err != nil {
		return err
	}
	return c.Print(map[string]string{"cancelled": f.ID}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, "nobody waits for it any more")
		return err
	})
}
