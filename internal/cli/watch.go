package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/client"
)

type watchCommand struct {
	Pod    *string `arg:"" optional:"" complete:"pods" help:"The pod; left out, all pods."`
	Name   *string `arg:"" optional:"" complete:"names" help:"The entity; left out, all of the pod."`
	From   *uint64 `placeholder:"POSITION" help:"Begin behind this position, the last one that was had; 0 begins with all that is kept. Left out, with what comes next."`
	Filter string  `short:"f" placeholder:"CEL" help:"Only entities for which an expression holds, and those that leave it."`
	Limit  int     `short:"n" placeholder:"N" help:"End after so many changes."`
	ServerFlags
	OutputFlag
}

// Help says more than the list of flags.
func (watchCommand) Help() string {
	return "Each change comes once, in the order in which they became durable. When the connection breaks it is made again, and what was changed meanwhile comes then. " +
		"What the server keeps no more is told as a gap, on the standard error output too: what is known of it is to be read anew. " +
		"The member id is the position from which another watch goes on.\n\n" +
		Examples(
			"twinsrv watch                                  # everything, until Ctrl-C",
			"twinsrv watch rooms --filter 'state.celsius > 25.0'",
			"twinsrv watch rooms tower-3-21 --limit 1",
			"twinsrv watch rooms --from 1042 -o jsonl >> changes.jsonl",
			"twinsrv watch rooms --from 0 -o jsonl | jq -c '[.name, .state]'",
		)
}

// change is an event as it is printed.
type change struct {
	Kind     client.EventKind `json:"kind"`
	ID       uint64           `json:"id"`
	Pod      string           `json:"pod,omitempty"`
	Name     string           `json:"name,omitempty"`
	Life     uint64           `json:"life,omitempty"`
	Revision uint64           `json:"revision,omitempty"`
	Changed  time.Time        `json:"changed,omitzero"`
	Type     string           `json:"type,omitempty"`
	State    json.RawMessage  `json:"state,omitempty"`
	Event    json.RawMessage  `json:"event,omitempty"` // of an event-sourced entity
	Unsure   bool             `json:"unsure,omitempty"`
	From     *uint64          `json:"from,omitempty"` // of a gap
	To       *uint64          `json:"to,omitempty"`
	Reason   string           `json:"reason,omitempty"`
}

func changeOf(e *client.Event[json.RawMessage]) change {
	c := change{
		Kind: e.Kind, ID: e.ID, Pod: e.Pod, Name: e.Name, Life: e.Life, Revision: e.Revision,
		Changed: e.Changed, Type: e.Type, Event: e.Raised, Unsure: e.Unsure, Reason: e.Reason,
	}
	if e.State != nil {
		c.State = *e.State
	}
	if e.Kind == client.Gap && e.To > 0 {
		c.From, c.To = &e.From, &e.To
	}
	return c
}

// Run prints changes until a signal comes.
func (c *watchCommand) Run(ctx context.Context) error {
	if c.Limit < 0 {
		return Usagef("--limit must not be negative; 0 is no limit")
	}
	for _, name := range []*string{c.Pod, c.Name} {
		if name != nil && *name == "" {
			return errEmptyName()
		}
	}
	return c.stream(ctx, func(ctx context.Context, s *Session) error {
		if err := c.there(ctx, s); err != nil {
			return err
		}
		err := c.print(ctx, s)
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return ended()
		}
		return err
	})
}

// there makes sure that there is something to watch: the watch itself tries for
// ever to connect.
func (c *watchCommand) there(ctx context.Context, s *Session) error {
	if s.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	var err error
	if c.Pod == nil {
		_, err = s.Limits(ctx)
	} else {
		_, err = s.Pod(ctx, *c.Pod)
	}
	return err
}

func (c *watchCommand) options() client.WatchOptions {
	o := client.WatchOptions{Filter: c.Filter}
	if c.Pod != nil {
		o.Pods = []string{*c.Pod}
	}
	if c.Name != nil {
		o.Name = *c.Name
	}
	if c.From != nil {
		o.Resume, o.After = true, *c.From
	}
	return o
}

func (c *watchCommand) print(ctx context.Context, s *Session) error {
	out := c.series("TIME", "KIND", "ENTITY", "REVISION", "TYPE", "STATE")
	o := c.options()
	lost := false
	o.Lost = func(err error) {
		if !lost {
			note("the connection to %s is lost, and is being made again: %s", s.shown, Printable(rootCause(err).Error()))
		}
		lost = true
	}
	o.Connected = func() {
		if lost {
			note("it is connected again")
		}
		lost = false
	}
	changes := 0
	for e, err := range client.Watch[json.RawMessage](ctx, s.Client, o) {
		if err != nil {
			return err
		}
		if e.Kind == client.Gap {
			note("%s", gapText(&e))
		}
		l := changeOf(&e)
		if err := out.add(l, l.cells); err != nil {
			return err
		}
		if changes++; changes == c.Limit {
			return nil
		}
	}
	return nil
}

// gapText says what is missing.
func gapText(e *client.Event[json.RawMessage]) string {
	if e.To == 0 {
		return fmt.Sprintf("a gap: changes may be missing (%s); read anew what you know of them", Printable(e.Reason))
	}
	return fmt.Sprintf("a gap: changes behind position %d, up to %d, are missing (%s); read anew what you know of them", e.From, e.To, Printable(e.Reason))
}

func (c *change) cells() []string {
	if c.Kind == client.Gap {
		return []string{"", string(c.Kind), "", "", c.Reason, ""}
	}
	state := c.State
	if state == nil {
		state = c.Event
	}
	text := ""
	if state != nil {
		text = cell(state)
	}
	tag := client.ETag{Life: c.Life, Revision: c.Revision}.String()
	return []string{c.Changed.Local().Format("15:04:05"), string(c.Kind), c.Pod + "/" + c.Name, tag, c.Type, text}
}
