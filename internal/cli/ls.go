package cli

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/client"
)

type lsCommand struct {
	Pod    string   `arg:"" complete:"pods" help:"The pod's name."`
	Filter string   `short:"f" placeholder:"CEL" help:"Only entities for which an expression holds, such as 'state.celsius > 21.0'."`
	Prefix string   `placeholder:"TEXT" help:"Only entities whose names begin with this."`
	Select []string `short:"s" placeholder:"PATH" help:"Show these paths alone, such as name,state.celsius."`
	Sort   []string `placeholder:"PATH" help:"Sort by these paths; a - before one turns its order round. Write --sort=-PATH then."`
	Limit  int      `short:"n" default:"100" placeholder:"N" help:"How many at most (${default})."`
	All    bool     `short:"a" help:"All of them, however many."`
	ServerFlags
	OutputFlag
}

// Help says more than the list of flags.
func (lsCommand) Help() string {
	return "Away from a terminal each entity is a line of JSON. Pages are read as they are printed, so that any number can be listed.\n\n" +
		Examples(
			"twinsrv ls rooms",
			`twinsrv ls rooms --filter 'state.celsius > 21.0 && name.startsWith("tower-")' --sort=-state.celsius`,
			"twinsrv ls rooms --select name,state.celsius --limit 10",
			"twinsrv ls rooms --all -o jsonl > rooms.jsonl",
			"twinsrv ls rooms --all -o json | jq '.items[].name'",
		)
}

// maxPage is how many entities a page has at most.
const maxPage = 1000

// Run prints entities, page after page.
func (c *lsCommand) Run(ctx context.Context) error {
	if c.Limit < 1 {
		return Usagef("--limit must be at least 1; --all lists all")
	}
	o := client.QueryOptions{Pods: []string{c.Pod}, Filter: c.Filter, Prefix: c.Prefix, Select: c.Select, Sort: c.Sort, Page: maxPage}
	if !c.All {
		o.Page = min(c.Limit+1, maxPage) // one more says whether there are more
	}
	return c.stream(ctx, func(ctx context.Context, s *Session) error {
		return c.print(patient(ctx, s, func(ctx context.Context) iter.Seq2[client.Twin[json.RawMessage], error] {
			return client.Query[json.RawMessage](ctx, s.Client, o)
		}))
	})
}

func (c *lsCommand) print(twins iter.Seq2[client.Twin[json.RawMessage], error]) error {
	out := c.list(formJSONL, c.heads()...)
	bar := NewBar(os.Stderr, "entities")
	if isTerminal(os.Stdout) {
		bar = nil // they are to be seen themselves
	}
	defer bar.End()
	unreadable, more := 0, false
	for t, err := range twins {
		var e *client.Error
		switch {
		case errors.As(err, &e) && e.Code == client.Quarantined && e.Status == 0:
			bar.End()
			unreadable++
			note("%s; `twinsrv quarantine list` says more", refusal(e))
			continue
		case err != nil:
			_ = out.flush() // what came stands; that it is not all the error says
			return err
		case !c.All && out.count == c.Limit:
			more = true
		}
		if more {
			break
		}
		l := c.selected(t)
		if err := out.add(l, func() []string { return c.cells(l) }); err != nil {
			return err
		}
		bar.Show(int64(out.count), 0)
	}
	bar.End()
	if err := out.end(); err != nil {
		return err
	}
	if more {
		note("there are more: --limit %d shows twice as many, --all all of them", 2*c.Limit)
	}
	if unreadable > 0 {
		return &failure{code: ExitPartial, text: "some entities cannot be read, and are left out"}
	}
	return nil
}

// selected leaves out what is not selected: the envelope comes with every query.
func (c *lsCommand) selected(t client.Twin[json.RawMessage]) twin {
	l := twinOf(t)
	if c.Select == nil {
		return l
	}
	var kept twin
	for _, path := range c.Select {
		switch {
		case path == "pod":
			kept.Pod = l.Pod
		case path == "name":
			kept.Name = l.Name
		case path == "life":
			kept.Life = l.Life
		case path == "revision":
			kept.Revision = l.Revision
		case path == "changed":
			kept.Changed = l.Changed
		case strings.HasPrefix(path, "state"):
			kept.State = l.State
		}
	}
	return kept
}

func (c *lsCommand) heads() []string {
	if c.Select == nil {
		return []string{"NAME", "REVISION", "CHANGED", "STATE"}
	}
	heads := make([]string, len(c.Select))
	for i, path := range c.Select {
		heads[i] = strings.ToUpper(path)
		if rest, is := strings.CutPrefix(path, "state"); is && rest != "" {
			heads[i] = strings.TrimPrefix(rest, ".") // as it is written in the state
		}
	}
	return heads
}

func (c *lsCommand) cells(l twin) []string {
	if c.Select == nil {
		return []string{l.Name, l.tag(), timeText(l.Changed), cell(l.State)}
	}
	whole, err := encodeJSON(l)
	if err != nil {
		return slices.Repeat([]string{""}, len(c.Select))
	}
	cells := make([]string, len(c.Select))
	for i, path := range c.Select {
		switch v := at(whole, path); {
		case path == "changed":
			cells[i] = timeText(l.Changed)
		case v != nil:
			cells[i] = cell(v)
		}
	}
	return cells
}
