package cli

import (
	"context"
	"encoding/json"
	"io"

	"github.com/twinsrv/twinsrv/client"
)

type patchCommand struct {
	entityArgs
	Body      []string `arg:"" help:"The merge patch: JSON; members, key=text or key:=json, where key:=null removes one; or - for JSON from the standard input."`
	JSONPatch bool     `name:"json-patch" help:"It is a JSON patch (RFC 6902): a list of operations, done whole or not at all."`
	At        string   `placeholder:"POINTER" help:"Merge into what stands at a JSON pointer in the state, such as /devices/0."`
	ID        string   `name:"id" placeholder:"TEXT" help:"A text for this one change: sent again with it, it has its effect once."`
	conditionFlags
	ServerFlags
	OutputFlag
}

// Help says more than the list of flags.
func (patchCommand) Help() string {
	return "The entity must be a document, and exist. With --if-match nobody else's change is undone.\n\n" +
		Examples(
			"twinsrv patch rooms tower-3-21 celsius:=22 window:=null",
			`twinsrv patch rooms tower-3-21 '{"celsius":22}' --if-match 2-5`,
			"twinsrv patch rooms tower-3-21 window=open --condition 'state.celsius > 30.0'",
			`twinsrv patch rooms tower-3-21 --json-patch '[{"op":"add","path":"/devices/-","value":"lamp"}]'`,
		)
}

// Run changes the entity.
func (c *patchCommand) Run(ctx context.Context) error {
	body, err := bodyOf(c.Body)
	if err != nil {
		return err
	}
	change := func(ctx context.Context, e client.Entity) (client.Ack, error) { return e.MergeAt(ctx, c.At, body) }
	if c.JSONPatch {
		if c.At != "" {
			return Usagef("the operations of a JSON patch say where; --at is for merge patches")
		}
		patch, err := jsonPatch(body)
		if err != nil {
			return err
		}
		change = func(ctx context.Context, e client.Entity) (client.Ack, error) { return e.Patch(ctx, patch...) }
	}
	if c.At != "" && c.At[0] != '/' {
		return Usagef("--at wants a JSON pointer, which begins with /")
	}
	return c.onEntity(ctx, c.entityArgs, func(ctx context.Context, e client.Entity) error {
		e, err := c.on(e.WithKey(c.ID))
		if err != nil {
			return err
		}
		ack, err := change(ctx, e)
		if err != nil {
			return err
		}
		text, err := encodeJSON(ack)
		if err != nil {
			return err
		}
		return c.Print(ack, func(w io.Writer) error { return printAnswer(w, text) })
	})
}

// jsonPatch reads a list of operations, whose values stay as they are written.
func jsonPatch(body json.RawMessage) (client.Patch, error) {
	var list []struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		From  string          `json:"from"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, Usagef(`a JSON patch is a list of operations such as [{"op":"add","path":"/a","value":1}]`)
	}
	patch := make(client.Patch, len(list))
	for i, o := range list {
		patch[i] = client.Operation{Op: o.Op, Path: o.Path, From: o.From}
		if o.Value != nil {
			var v any = o.Value
			patch[i].Value = &v
		}
	}
	return patch, nil
}
