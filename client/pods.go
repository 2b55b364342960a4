package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
)

// Definition says what a pod is.
type Definition struct {
	// Type is "document", or "typed" for types that are part of a program.
	Type string `json:"type"`
	// Durability is "sync", "async:" and an interval such as "async:500ms", or
	// "volatile". Empty means "sync".
	Durability string `json:"durability,omitempty"`
	// Create says which messages create entities, of what name.
	Create Creation `json:"create"`
	// Schema is the JSON Schema (2020-12) of documents; nil is none.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Index are the paths by which entities are found fast, such as
	// "state.floor".
	Index []string `json:"index,omitempty"`
}

// Creation says which messages create entities.
type Creation struct {
	// By names the messages; nil means the type's own rule, an empty list none.
	By []string `json:"by,omitzero"`
	// Names is a regular expression for the whole name; empty takes every name.
	Names string `json:"names,omitempty"`
}

// Pod describes a pod.
type Pod struct {
	Name string `json:"name"`
	Definition
	// ReadOnly says that the program does not have the pod's type.
	ReadOnly bool      `json:"readOnly"`
	Messages []Message `json:"messages"`
	// StateSchema is the JSON Schema of the states of a typed pod; nil in lists.
	StateSchema json.RawMessage `json:"stateSchema"`
	// History is what is kept of changes; nil in lists.
	History *Retention `json:"history"`
}

// Retention is what is kept of the changes of a pod's entities.
type Retention struct {
	// Changes is how many of the store's last changes are kept.
	Changes uint64 `json:"changes"`
	// Age is how long changes are kept, such as "24h0m0s"; empty when age drops
	// none.
	Age string `json:"age,omitempty"`
	// Dropped is the position through which changes may have been dropped,
	// Position the newest one of the store.
	Dropped  uint64 `json:"dropped"`
	Position uint64 `json:"position"`
	// Volatile says that the pod is, and that the positions say nothing.
	Volatile bool `json:"volatile,omitempty"`
}

// Message describes one message of a pod's entities.
type Message struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"` // "on", "reply" or "query"
	Creates bool   `json:"creates"`
	// BodySchema and ReplySchema are the JSON Schemas of what a message of a typed
	// pod brings and is answered with; nil in lists.
	BodySchema  json.RawMessage `json:"bodySchema"`
	ReplySchema json.RawMessage `json:"replySchema"`
}

// Pods goes through the pods by name, reading page after page. An error is the
// last that comes.
func (c *Client) Pods(ctx context.Context) iter.Seq2[Pod, error] {
	return pages[Pod](ctx, c, "/v1/pods", nil)
}

// Pod reads what a pod is.
func (c *Client) Pod(ctx context.Context, name string) (Pod, error) {
	var p Pod
	return p, c.getJSON(ctx, podPath(name), nil, &p)
}

// PutPod declares a document pod, or changes the definition of one, durably, and
// reports whether it is new.
func (c *Client) PutPod(ctx context.Context, name string, d Definition) (p Pod, created bool, err error) {
	if d.Type == "" {
		d.Type = "document"
	}
	body, err := json.Marshal(d)
	if err != nil {
		return p, false, fmt.Errorf("the definition of pod %s: %w", name, err)
	}
	a, err := c.do(ctx, request{method: http.MethodPut, path: podPath(name), body: body, bodyType: jsonType, repeats: always})
	if err != nil {
		return p, false, err
	}
	return p, a.status == http.StatusCreated, a.into(&p)
}

// DeletePod deletes a document pod that has no entities, or with cascade the pod
// and its entities.
func (c *Client) DeletePod(ctx context.Context, name string, cascade bool) error {
	r := request{method: http.MethodDelete, path: podPath(name)}
	if cascade {
		r.ask("cascade", "true")
	}
	_, err := c.do(ctx, r)
	return err
}

// pages goes through the items of a list.
func pages[T any](ctx context.Context, c *Client, path string, query url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for v, err := range rawPages(ctx, c, path, query) {
			var item T
			if err == nil {
				if err = json.Unmarshal(v, &item); err != nil {
					err = fmt.Errorf("an item of %s does not fit a %T: %w", path, item, err)
				}
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// rawPages goes through the items of a list as they come.
func rawPages(ctx context.Context, c *Client, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		q := url.Values{}
		for name, values := range query {
			q[name] = values
		}
		for {
			var page struct {
				Items []json.RawMessage `json:"items"`
				Next  string            `json:"next"`
			}
			if err := c.getJSON(ctx, path, q, &page); err != nil {
				yield(nil, err)
				return
			}
			for _, i := range page.Items {
				if !yield(i, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			q.Set("cursor", page.Next)
		}
	}
}

// number adds a number to a query unless it is 0.
func number(q url.Values, name string, n int) {
	if n != 0 {
		q.Set(name, strconv.Itoa(n))
	}
}
