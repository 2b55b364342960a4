package cli

import (
	"context"
	"encoding/json"
	"io"

	"github.com/twinsrv/twinsrv/client"
)

type getCommand struct {
	entityArgs
	Revision uint64 `short:"r" placeholder:"N" help:"As it was at a revision of its present life."`
	At       string `placeholder:"TIME" help:"As it was at a time, such as 2026-01-31T12:00:00Z, '2026-01-31 13:00' of here, or 90m ago."`
	State    bool   `help:"Print the state alone."`
	ServerFlags
	OutputFlag
}

// Help says more than the list of flags.
func (getCommand) Help() string {
	return "It sees every change that was acknowledged before, wakes no entity and waits for none.\n\n" +
		Examples(
			"twinsrv get rooms tower-3-21",
			"twinsrv get rooms 'tower/4/1' -o yaml",
			"twinsrv get rooms tower-3-21 --state | jq .celsius",
			"twinsrv get rooms tower-3-21 --revision 3",
			"twinsrv get rooms tower-3-21 --at 15m           # a quarter of an hour ago",
		)
}

// Run prints an entity.
func (c *getCommand) Run(ctx context.Context) error {
	read, err := c.read()
	if err != nil {
		return err
	}
	return c.onEntity(ctx, c.entityArgs, func(ctx context.Context, e client.Entity) error {
		t, err := read(ctx, e)
		switch {
		case err != nil:
			return err
		case c.State:
			return c.Print(t.State, func(w io.Writer) error { return printAnswer(w, t.State) })
		}
		return c.Print(t, func(w io.Writer) error { return printTwin(w, t) })
	})
}

// read returns what reads the entity as of when it is wanted.
func (c *getCommand) read() (func(ctx context.Context, e client.Entity) (twin, error), error) {
	var from func(ctx context.Context, e client.Entity) (client.Twin[json.RawMessage], error)
	switch {
	case c.Revision > 0 && c.At != "":
		return nil, Usagef("--revision and --at both say when: give one of them")
	case c.Revision > 0:
		from = func(ctx context.Context, e client.Entity) (client.Twin[json.RawMessage], error) {
			return client.GetAt[json.RawMessage](ctx, e, c.Revision)
		}
	case c.At != "":
		when, err := moment(c.At)
		if err != nil {
			return nil, err
		}
		from = func(ctx context.Context, e client.Entity) (client.Twin[json.RawMessage], error) {
			return client.GetAtTime[json.RawMessage](ctx, e, when)
		}
	default:
		from = client.Get[json.RawMessage]
	}
	return func(ctx context.Context, e client.Entity) (twin, error) {
		t, err := from(ctx, e)
		return twinOf(t), err
	}, nil
}
