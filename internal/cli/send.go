package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/twinsrv/twinsrv/client"
)

type sendCommand struct {
	entityArgs
	Type  string   `arg:"" complete:"messages" help:"The message's name."`
	Body  []string `arg:"" optional:"" help:"What it brings: JSON; members, key=text or key:=json; or - for JSON from the standard input."`
	Async bool     `help:"Do not wait for the answer: print its id, for the command answer."`
	ID    string   `name:"id" placeholder:"TEXT" help:"A text for this one message: sent again with it, it has its effect once."`
	conditionFlags
	ServerFlags
	OutputFlag
}

// Help says more than the list of flags.
func (sendCommand) Help() string {
	return "The first message to a name creates the entity. The answer means that the change is on disk. " +
		"What fails is sent again as long as that can do no harm; --id makes it safe also for another run of the command.\n\n" +
		Examples(
			`twinsrv send rooms tower-3-21 merge '{"celsius":21.5,"floor":"3"}'`,
			"twinsrv send rooms tower-3-21 merge celsius:=21.5 floor=3",
			"twinsrv send rooms tower-3-21 merge - < room.json",
			"twinsrv send rooms tower-3-21 set pointer=/people value:=2 --id order-4711",
			"twinsrv send rooms tower-3-21 merge people:=0 --async",
		)
}

// Run sends the message.
func (c *sendCommand) Run(ctx context.Context) error {
	body, err := bodyOf(c.Body)
	if err != nil {
		return err
	}
	var message any // nil for none
	if body != nil {
		message = body
	}
	return c.onEntity(ctx, c.entityArgs, func(ctx context.Context, e client.Entity) error {
		e, err := c.on(e.WithKey(c.ID))
		if err != nil {
			return err
		}
		if c.Async {
			return c.start(ctx, e, message)
		}
		answer, err := client.Ask[json.RawMessage](ctx, e, c.Type, message)
		if err != nil {
			return err
		}
		return c.Print(answer, func(w io.Writer) error { return printAnswer(w, answer) })
	})
}

// started is where an answer will be.
type started struct {
	Future string `json:"future"`
	Path   string `json:"path"`
}

// start sends the message without waiting for its answer.
func (c *sendCommand) start(ctx context.Context, e client.Entity, message any) error {
	f, err := e.Start(ctx, c.Type, message)
	if err != nil {
		return err
	}
	return c.Print(started{f.ID, futures + f.ID}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "it is on its way; `twinsrv answer %s` prints its answer\n", f.ID)
		return err
	})
}
