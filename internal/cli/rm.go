package cli

import (
	"context"
	"fmt"
	"io"
)

type rmCommand struct {
	Pod     string  `arg:"" complete:"pods" help:"The pod's name."`
	Name    *string `arg:"" optional:"" complete:"names" help:"The entity's name, as it is. Without it the pod is deleted."`
	Cascade bool    `help:"Delete the pod's entities with it."`
	Discard bool    `help:"Give up the messages that the entity has sent and that are not delivered yet."`
	conditionFlags
	ServerFlags
	OutputFlag
}

// Help says more than the list of flags.
func (rmCommand) Help() string {
	return "A deletion is durable when the command has ended. A pod must be empty, or be deleted with --cascade.\n\n" +
		Examples(
			"twinsrv rm rooms tower-3-21",
			"twinsrv rm rooms tower-3-21 --if-match 2-5",
			"twinsrv rm rooms tower-3-21 --condition 'state.people == 0'",
			"twinsrv rm rooms --cascade                     # the pod, and all that it has",
		)
}

// removed is what programs are told.
type removed struct {
	Pod     string `json:"pod"`
	Name    string `json:"name,omitempty"`
	Removed bool   `json:"removed"`
}

// Run deletes.
func (c *rmCommand) Run(ctx context.Context) error {
	switch {
	case c.Name != nil && *c.Name == "":
		return errEmptyName()
	case c.Name == nil && (c.IfMatch != "" || c.Condition != "" || c.Discard):
		return Usagef("--if-match, --condition and --discard are for an entity: give its name")
	case c.Name != nil && c.Cascade:
		return Usagef("--cascade is for a pod: leave the entity's name out")
	}
	name, what := "", "the pod "+Printable(c.Pod)
	if c.Name != nil {
		name = *c.Name
		what = entityArgs{c.Pod, name}.String()
	}
	return c.do(ctx, func(ctx context.Context, s *Session) error {
		if err := c.remove(ctx, s); err != nil {
			return err
		}
		return c.Print(removed{c.Pod, name, true}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s is gone\n", what)
			return err
		})
	})
}

func (c *rmCommand) remove(ctx context.Context, s *Session) error {
	if c.Name == nil {
		return s.DeletePod(ctx, c.Pod, c.Cascade)
	}
	e, err := c.on(s.entity(c.Pod, *c.Name))
	switch {
	case err != nil:
		return err
	case c.Discard:
		return e.Discard(ctx)
	}
	return e.Delete(ctx)
}
