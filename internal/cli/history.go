package cli

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/client"
)

type historyCommand struct {
	entityArgs
	From    uint64 `placeholder:"REVISION" help:"Begin with this revision."`
	To      uint64 `placeholder:"REVISION" help:"End with this one."`
	Limit   int    `short:"n" placeholder:"N" help:"The first so many of these."`
	Last    uint64 `placeholder:"N" help:"The last so many, in place of --from and --to."`
	Diff    bool   `short:"d" help:"Print what each change changed, in place of the whole state."`
	Earlier bool   `help:"Earlier lives of the name as well."`
	ServerFlags
	OutputFlag
}

// Help says more than the list of flags.
func (historyCommand) Help() string {
	return "It lists what the history keeps, oldest first.\n\n" +
		Examples(
			"twinsrv history rooms tower-3-21 --last 10",
			"twinsrv history rooms tower-3-21 --diff",
			"twinsrv history rooms tower-3-21 --from 6 --limit 5",
			"twinsrv history rooms tower-3-21 --earlier -o jsonl | jq -c '[.changed, .state.celsius]'",
		)
}

// revisionLine is a change as it is printed.
type revisionLine struct {
	Life       uint64          `json:"life"`
	Revision   uint64          `json:"revision"`
	Position   uint64          `json:"position,omitempty"`
	Changed    time.Time       `json:"changed"`
	Type       string          `json:"type"`
	Deleted    bool            `json:"deleted,omitempty"`
	State      json.RawMessage `json:"state,omitempty"`
	Diff       []difference    `json:"diff,omitzero"`
	Event      json.RawMessage `json:"event,omitempty"`
	Unreadable string          `json:"unreadable,omitempty"`
}

// Run prints the changes, page after page.
func (c *historyCommand) Run(ctx context.Context) error {
	switch {
	case c.Last > 0 && (c.From > 0 || c.To > 0 || c.Earlier || c.Limit > 0):
		return Usagef("--last stands in place of --from, --to, --limit and --earlier")
	case c.Limit < 0:
		return Usagef("--limit must not be negative; 0 is no limit")
	}
	return c.stream(ctx, func(ctx context.Context, s *Session) error {
		e := s.entity(c.Pod, c.Name)
		if err := c.settle(ctx, e); err != nil {
			return err
		}
		o := client.HistoryOptions{From: c.From, To: c.To, Earlier: c.Earlier}
		if c.Diff && c.From > 1 {
			o.From-- // what the first one is compared with
		}
		if c.Limit > 0 {
			o.Page = min(c.Limit+1, maxPage)
		}
		return c.print(patient(ctx, s, func(ctx context.Context) iter.Seq2[client.Revision[json.RawMessage], error] {
			return client.History[json.RawMessage](ctx, e, o)
		}))
	})
}

// settle says of the last so many with which they begin.
func (c *historyCommand) settle(ctx context.Context, e client.Entity) error {
	if c.Last == 0 {
		return nil
	}
	t, err := client.Get[json.RawMessage](ctx, e)
	if t.Revision > c.Last {
		c.From = t.Revision - c.Last + 1
	}
	return err
}

// flagged names the flag where the server names the parameter.
func flagged(err error) error {
	if e := (*client.Error)(nil); errors.As(err, &e) {
		e.Detail = strings.Replace(e.Detail, "?earlier=true", "--earlier", 1)
	}
	return err
}

func (c *historyCommand) print(changes iter.Seq2[client.Revision[json.RawMessage], error]) error {
	heads := []string{"REVISION", "CHANGED", "TYPE", "STATE"}
	if c.Diff {
		heads[3] = "CHANGES"
	}
	out := c.list(formJSONL, heads...)
	var before json.RawMessage
	var life uint64
	first := true
	for r, err := range changes {
		if err != nil {
			_ = out.flush() // what came stands
			return flagged(err)
		}
		if r.Life != life {
			before, life = nil, r.Life
		}
		if first && r.Revision > max(c.From, 1) {
			note("revision %d is the oldest that the history has", r.Revision)
		}
		first = false
		l := revisionLine{
			Life: r.Life, Revision: r.Revision, Position: r.Position, Changed: r.Changed, Type: r.Type,
			Deleted: r.Deleted, Event: r.Raised, Unreadable: r.Unreadable,
		}
		if r.State != nil {
			l.State = *r.State
		}
		whole := l.State
		if c.Diff {
			l.Diff, l.State = l.compare(before, r.Revision == 1), nil
		}
		before = whole
		if r.Revision < c.From {
			continue
		}
		if err := out.add(l, func() []string { return l.cells(c.Diff) }); err != nil {
			return err
		}
		if out.count == c.Limit {
			break
		}
	}
	return out.end()
}

// compare returns what a change changed, all of the state where what was before
// is not known.
func (l *revisionLine) compare(before json.RawMessage, created bool) []difference {
	if l.State == nil || before == nil && !created {
		return whole(l.State)
	}
	return differences(before, l.State)
}

func (l *revisionLine) cells(diff bool) []string {
	text := ""
	switch {
	case l.Unreadable != "":
		text = "cannot be read: " + l.Unreadable
	case diff:
		texts := make([]string, len(l.Diff))
		for i, d := range l.Diff {
			texts[i] = d.String()
		}
		text = strings.Join(texts, "  ")
	case l.State != nil:
		text = cell(l.State)
	case l.Event != nil:
		text = cell(l.Event)
	}
	return []string{client.ETag{Life: l.Life, Revision: l.Revision}.String(), timeText(l.Changed), l.Type, text}
}
