package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/httpapi"
)

// quarantineCommands are about a running server.
type quarantineCommands struct {
	List   quarantineList   `cmd:"" help:"List the entities that were found to be unreadable."`
	Show   quarantineShow   `cmd:"" help:"Say why an entity cannot be read, and what is left of it."`
	Retry  quarantineRetry  `cmd:"" help:"Have an entity read again, an event-sourced one from its events."`
	Remove quarantineRemove `cmd:"" help:"End an entity that cannot be read. What is left of it is gone then."`
}

// serverFlag says which server a command talks to.
type serverFlag struct {
	Server string `default:"${server}" env:"TWINSRV_SERVER" placeholder:"URL" help:"The running server (${default})."`
}

// entityArgs name an entity.
type entityArgs struct {
	Pod  string `arg:"" help:"The pod's name."`
	Name string `arg:"" help:"The entity's name, as it is."`
}

func (e entityArgs) path() string {
	return "/v1/quarantine/" + url.PathEscape(e.Pod) + "/" + url.PathEscape(e.Name)
}

func (e entityArgs) String() string { return printable(e.Pod + "/" + e.Name) }

type quarantineList struct {
	serverFlag
	outputFlag
}

// Help says more than the list of flags.
func (quarantineList) Help() string {
	return examples("twinsrv quarantine list", "twinsrv quarantine list --server http://127.0.0.1:9000 -o json")
}

// Run prints the whole list.
func (c *quarantineList) Run(ctx context.Context) error {
	server, err := connect(c.Server)
	if err != nil {
		return err
	}
	defer server.close()
	all := httpapi.QuarantineList{Items: []httpapi.QuarantinedLine{}}
	for next := ""; ; {
		var page httpapi.QuarantineList
		if err := server.call(ctx, http.MethodGet, "/v1/quarantine?limit=1000&cursor="+url.QueryEscape(next), &page); err != nil {
			return err
		}
		all.Items = append(all.Items, page.Items...)
		if next = page.Next; next == "" {
			break
		}
	}
	switch {
	case c.json():
		return printJSON(os.Stdout, all)
	case len(all.Items) == 0:
		fmt.Println("no entity was found to be unreadable")
		return nil
	}
	lines := make([][]string, 0, len(all.Items))
	for _, i := range all.Items {
		name := i.Name
		if name == "" {
			name = "(the pod itself)"
		}
		lines = append(lines, []string{i.Pod, name, i.Quarantined})
	}
	return printTable(os.Stdout, []string{"POD", "NAME", "REASON"}, lines)
}

type quarantineShow struct {
	serverFlag
	outputFlag
	entityArgs
}

// Help says more than the list of flags.
func (quarantineShow) Help() string {
	return examples("twinsrv quarantine show rooms tower-3-21", "twinsrv quarantine show rooms tower-3-21 -o json | jq -r .record.state | base64 -d")
}

// Run prints one entity.
func (c *quarantineShow) Run(ctx context.Context) error {
	server, err := connect(c.Server)
	if err != nil {
		return err
	}
	defer server.close()
	var q httpapi.QuarantinedEntity
	if err := server.call(ctx, http.MethodGet, c.path(), &q); err != nil {
		return err
	}
	if c.json() {
		return printJSON(os.Stdout, q)
	}
	return printQuarantined(os.Stdout, &q)
}

func printQuarantined(w io.Writer, q *httpapi.QuarantinedEntity) error {
	var b strings.Builder
	fmt.Fprintf(&b, "entity    %s\nreason    %s\n", printable(q.Pod+"/"+q.Name), printable(q.Quarantined))
	if r := q.Record; r == nil {
		fmt.Fprintln(&b, "record    cannot be read either")
	} else {
		fmt.Fprintf(&b, "record    life %d, revision %d, of %s\n", r.Life, r.Revision, r.Changed.Format(time.RFC3339))
		fmt.Fprintf(&b, "state     %d bytes of %s, schema version %d; -o json shows them\n", r.Size, printable(r.Codec), r.Schema)
	}
	fmt.Fprintln(&b, "next      run the version that wrote it, restore a backup and retry; or remove it")
	_, err := io.WriteString(w, b.String())
	return err
}

type quarantineRetry struct {
	serverFlag
	outputFlag
	entityArgs
}

// Help says more than the list of flags.
func (quarantineRetry) Help() string { return examples("twinsrv quarantine retry rooms tower-3-21") }

// Run has an entity read again.
func (c *quarantineRetry) Run(ctx context.Context) error {
	server, err := connect(c.Server)
	if err != nil {
		return err
	}
	defer server.close()
	var e httpapi.Envelope
	if err := server.call(ctx, http.MethodPost, c.path()+"/retry", &e); err != nil {
		var p *problemError
		if errors.As(err, &p) && p.Code == httpapi.CodeQuarantined {
			return fmt.Errorf("it still cannot be read: %s", printable(p.Detail))
		}
		return err
	}
	if c.json() {
		return printJSON(os.Stdout, e)
	}
	fmt.Printf("%s can be read: life %d, revision %d\n", c.entityArgs, e.Life, e.Revision)
	return nil
}

type quarantineRemove struct {
	serverFlag
	outputFlag
	entityArgs
}

// Help says more than the list of flags.
func (quarantineRemove) Help() string { return examples("twinsrv quarantine remove rooms tower-3-21") }

// removed is what remove prints for programs.
type removed struct {
	Pod     string `json:"pod"`
	Name    string `json:"name"`
	Removed bool   `json:"removed"`
}

// Run ends an entity that cannot be read.
func (c *quarantineRemove) Run(ctx context.Context) error {
	server, err := connect(c.Server)
	if err != nil {
		return err
	}
	defer server.close()
	if err := server.call(ctx, http.MethodDelete, c.path(), nil); err != nil {
		return err
	}
	if c.json() {
		return printJSON(os.Stdout, removed{c.Pod, c.Name, true})
	}
	fmt.Printf("%s is gone; its next message may create it anew\n", c.entityArgs)
	return nil
}
