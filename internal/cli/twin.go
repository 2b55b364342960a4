package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/twinsrv/twinsrv/client"
)

// twin is an entity as it is printed.
type twin struct {
	Pod      string          `json:"pod,omitempty"`
	Name     string          `json:"name,omitempty"`
	Life     uint64          `json:"life,omitempty"`
	Revision uint64          `json:"revision,omitempty"`
	Changed  time.Time       `json:"changed,omitzero"`
	State    json.RawMessage `json:"state,omitempty"`
}

func twinOf(t client.Twin[json.RawMessage]) twin { return twin(t) }

func (t *twin) tag() string { return client.ETag{Life: t.Life, Revision: t.Revision}.String() }

// printTwin prints an entity for people: its state member by member.
func printTwin(w io.Writer, t twin) error {
	lines := [][]string{
		{"entity", t.Pod + "/" + t.Name},
		{"revision", fmt.Sprintf("%s (life %d, revision %d)", t.tag(), t.Life, t.Revision)},
		{"changed", timeText(t.Changed)},
	}
	return PrintTable(w, nil, append(lines, fields("state", t.State)...))
}

// printAnswer prints what a message was answered with.
func printAnswer(w io.Writer, answer json.RawMessage) error {
	lines := fields("", answer)
	if len(lines) == 1 && lines[0][0] == "" {
		_, err := fmt.Fprintln(w, Printable(lines[0][1]))
		return err
	}
	return PrintTable(w, nil, lines)
}

// fields are lines of a name and a value each: the members of an object, below a
// name, or the value itself.
func fields(name string, value json.RawMessage) [][]string {
	members, is := membersOf(value)
	if !is || len(members) == 0 {
		return [][]string{{name, cell(value)}}
	}
	lines := make([][]string, len(members))
	for i, m := range members {
		key := m.name
		if name != "" {
			key = name + "." + key
		}
		lines[i] = []string{key, cell(m.value)}
	}
	return lines
}
