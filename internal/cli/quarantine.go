package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/client"
)

// quarantineCommands are about entities that cannot be read.
type quarantineCommands struct {
	List   quarantineList   `cmd:"" help:"List the entities that were found to be unreadable."`
	Show   quarantineShow   `cmd:"" help:"Say why an entity cannot be read, and what is left of it."`
	Retry  quarantineRetry  `cmd:"" help:"Have an entity read again, an event-sourced one from its events."`
	Remove quarantineRemove `cmd:"" help:"End an entity that cannot be read. What is left of it is gone then."`
}

type quarantineList struct {
	ServerFlags
	OutputFlag
}

// Help says more than the list of flags.
func (quarantineList) Help() string {
	return Examples("twinsrv quarantine list", "twinsrv quarantine list --server http://127.0.0.1:9000 -o json")
}

// unreadable is an entity that cannot be read, as it is printed.
type unreadable struct {
	Pod         string      `json:"pod"`
	Name        string      `json:"name"`
	Quarantined string      `json:"quarantined"`
	Record      *recordLeft `json:"record,omitempty"`
}

type recordLeft client.Record

// Run prints the whole list.
func (c *quarantineList) Run(ctx context.Context) error {
	return c.stream(ctx, func(ctx context.Context, s *Session) error {
		out := c.list(formJSON, "POD", "NAME", "REASON")
		for u, err := range patient(ctx, s, func(ctx context.Context) iter.Seq2[client.Unreadable, error] { return s.Quarantine(ctx) }) {
			if err != nil {
				return err
			}
			name := u.Name
			if name == "" {
				name = "(the pod itself)"
			}
			l := unreadable{Pod: u.Pod, Name: u.Name, Quarantined: u.Quarantined}
			if err := out.add(l, func() []string { return []string{u.Pod, name, u.Quarantined} }); err != nil {
				return err
			}
		}
		if out.form == formTable && out.count == 0 {
			fmt.Println("no entity was found to be unreadable")
			return nil
		}
		return out.end()
	})
}

type quarantineShow struct {
	ServerFlags
	OutputFlag
	entityArgs
}

// Help says more than the list of flags.
func (quarantineShow) Help() string {
	return Examples("twinsrv quarantine show rooms tower-3-21", "twinsrv quarantine show rooms tower-3-21 -o json | jq -r .record.state | base64 -d")
}

// Run prints one entity.
func (c *quarantineShow) Run(ctx context.Context) error {
	return c.onEntity(ctx, c.entityArgs, func(ctx context.Context, e client.Entity) error {
		u, err := e.Unreadable(ctx)
		if err != nil {
			return err
		}
		l := unreadable{u.Pod, u.Name, u.Quarantined, (*recordLeft)(u.Record)}
		return c.Print(l, l.print)
	})
}

func (l *unreadable) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "entity    %s\nreason    %s\n", Printable(l.Pod+"/"+l.Name), Printable(l.Quarantined))
	if r := l.Record; r == nil {
		fmt.Fprintln(&b, "record    cannot be read either")
	} else {
		fmt.Fprintf(&b, "record    life %d, revision %d, of %s\n", r.Life, r.Revision, r.Changed.Format(time.RFC3339))
		fmt.Fprintf(&b, "state     %d bytes of %s, schema version %d; -o json shows them\n", r.Size, Printable(r.Codec), r.Schema)
	}
	fmt.Fprintln(&b, "next      run the version that wrote it, restore a backup and retry; or remove it")
	_, err := io.WriteString(w, b.String())
	return err
}

type quarantineRetry struct {
	ServerFlags
	OutputFlag
	entityArgs
}

// Help says more than the list of flags.
func (quarantineRetry) Help() string { return Examples("twinsrv quarantine retry rooms tower-3-21") }

// Run has an entity read again, and prints it.
func (c *quarantineRetry) Run(ctx context.Context) error {
	return c.onEntity(ctx, c.entityArgs, func(ctx context.Context, e client.Entity) error {
		t, err := e.Retry(ctx)
		var refused *client.Error
		if errors.As(err, &refused) && refused.Code == client.Quarantined {
			return &failure{code: ExitFailed, text: "it still cannot be read: " + Printable(refused.Detail), cause: err}
		}
		if err != nil {
			return err
		}
		return c.Print(twinOf(t), func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s can be read: life %d, revision %d\n", c.entityArgs, t.Life, t.Revision)
			return err
		})
	})
}

type quarantineRemove struct {
	ServerFlags
	OutputFlag
	entityArgs
}

// Help says more than the list of flags.
func (quarantineRemove) Help() string { return Examples("twinsrv quarantine remove rooms tower-3-21") }

// Run ends an entity that cannot be read.
func (c *quarantineRemove) Run(ctx context.Context) error {
	return c.onEntity(ctx, c.entityArgs, func(ctx context.Context, e client.Entity) error {
		if err := e.RemoveUnreadable(ctx); err != nil {
			return err
		}
		return c.Print(removed{c.Pod, c.Name, true}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s is gone; its next message may create it anew\n", c.entityArgs)
			return err
		})
	})
}
