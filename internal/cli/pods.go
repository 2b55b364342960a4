package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/twinsrv/twinsrv/client"
)

type podsCommand struct {
	Pod   string `arg:"" optional:"" complete:"pods" help:"Show this pod alone, with all that is known of it."`
	Count bool   `help:"Count the entities of each."`
	ServerFlags
	OutputFlag
}

// Help says more than the list of flags.
func (podsCommand) Help() string {
	return Examples(
		"twinsrv pods",
		"twinsrv pods --count",
		"twinsrv pods rooms                      # its messages, and what its states must be like",
		"twinsrv pods rooms -o json | jq .schema",
		"twinsrv pods -o jsonl --server http://127.0.0.1:9000",
	)
}

// podLine is a pod as it is printed.
type podLine struct {
	Name string `json:"name"`
	client.Definition
	ReadOnly    bool              `json:"readOnly,omitempty"`
	Entities    *int              `json:"entities,omitempty"`
	Messages    []messageLine     `json:"messages"`
	StateSchema json.RawMessage   `json:"stateSchema,omitempty"`
	History     *client.Retention `json:"history,omitempty"`
}

type messageLine struct {
	Name        string          `json:"name"`
	Kind        string          `json:"kind"`
	Creates     bool            `json:"creates"`
	BodySchema  json.RawMessage `json:"bodySchema,omitempty"`
	ReplySchema json.RawMessage `json:"replySchema,omitempty"`
}

func podLineOf(p client.Pod) podLine {
	l := podLine{Name: p.Name, Definition: p.Definition, ReadOnly: p.ReadOnly, Messages: []messageLine{}, StateSchema: p.StateSchema, History: p.History}
	for _, m := range p.Messages {
		l.Messages = append(l.Messages, messageLine(m))
	}
	return l
}

// Run prints the list, or one pod.
func (c *podsCommand) Run(ctx context.Context) error {
	if c.Pod != "" {
		return c.do(ctx, c.one)
	}
	return c.stream(ctx, func(ctx context.Context, s *Session) error {
		heads := []string{"POD", "TYPE", "DURABILITY", "MESSAGES", "INDEX"}
		if c.Count {
			heads = append(heads, "ENTITIES")
		}
		out := c.list(formJSON, heads...)
		for p, err := range patient(ctx, s, func(ctx context.Context) iter.Seq2[client.Pod, error] { return s.Pods(ctx) }) {
			if err != nil {
				return err
			}
			l := podLineOf(p)
			if err := c.count(ctx, s, &l); err != nil {
				return err
			}
			if err := out.add(l, l.cells); err != nil {
				return err
			}
		}
		if out.count == 0 {
			note("the server has no pods yet")
		}
		return out.end()
	})
}

// count counts the entities of a pod, if that is wanted.
func (c *podsCommand) count(ctx context.Context, s *Session, l *podLine) error {
	if !c.Count {
		return nil
	}
	n, err := s.Count(ctx, client.QueryOptions{Pods: []string{l.Name}})
	l.Entities = &n
	return err
}

func (l *podLine) cells() []string {
	kind := l.Type
	if l.ReadOnly {
		kind += " (read-only)"
	}
	var messages []string
	for _, m := range l.Messages {
		messages = append(messages, m.Name)
	}
	cells := []string{l.Name, kind, l.Durability, strings.Join(messages, " "), strings.Join(l.Index, " ")}
	if l.Entities != nil {
		cells = append(cells, fmt.Sprint(*l.Entities))
	}
	return cells
}

// one prints a pod.
func (c *podsCommand) one(ctx context.Context, s *Session) error {
	p, err := s.Pod(ctx, c.Pod)
	if err != nil {
		return err
	}
	l := podLineOf(p)
	if err := c.count(ctx, s, &l); err != nil {
		return err
	}
	return c.Print(l, l.print)
}

// print prints a pod for people.
func (l *podLine) print(w io.Writer) error {
	cells := l.cells()
	lines := [][]string{{"pod", l.Name}, {"type", cells[1]}, {"durability", l.Durability}}
	if l.Entities != nil {
		lines = append(lines, []string{"entities", fmt.Sprint(*l.Entities)})
	}
	if len(l.Index) > 0 {
		lines = append(lines, []string{"index", strings.Join(l.Index, " ")})
	}
	for _, schema := range []json.RawMessage{l.Schema, l.StateSchema} {
		if schema != nil {
			lines = append(lines, []string{"state", shapeText(schema)})
		}
	}
	if h := l.History; h != nil {
		lines = append(lines, []string{"history", historyText(h)})
	}
	for _, m := range l.Messages {
		text := m.Kind
		if m.Creates {
			text += ", creates"
		}
		if m.BodySchema != nil {
			text += ": " + shapeText(m.BodySchema)
		}
		lines = append(lines, []string{"message " + m.Name, text})
	}
	return PrintTable(w, nil, lines)
}

func historyText(h *client.Retention) string {
	if h.Volatile {
		return "none: the pod ends with the server"
	}
	text := fmt.Sprintf("the store's last %d changes", h.Changes)
	if h.Age != "" {
		text += " of the last " + h.Age
	}
	return text
}
