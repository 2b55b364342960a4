package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Entity is the address of one entity, and what its next requests are
// conditional on. It is a value: each method that adds something returns
// another. It is safe for concurrent use.
type Entity struct {
	c          *Client
	pod, name  string
	match      []ETag
	noneMatch  []ETag
	there      bool // If-Match: *
	absent     bool // If-None-Match: *
	where, key string
	timeout    time.Duration
}

// Twin is an entity as the server shows it.
type Twin[S any] struct {
	Pod      string    `json:"pod"`
	Name     string    `json:"name"`
	Life     uint64    `json:"life"`
	Revision uint64    `json:"revision"`
	Changed  time.Time `json:"changed"`
	State    S         `json:"state"`
}

// ETag names the twin's revision.
func (t *Twin[S]) ETag() ETag { return ETag{t.Life, t.Revision} }

// Ack is the life and the revision that an entity has after a write.
type Ack struct {
	Life     uint64 `json:"life"`
	Revision uint64 `json:"revision"`
	// Created says that a write of the state created the entity. The answer to a
	// message does not tell, so Send leaves it false.
	Created bool `json:"-"`
}

// ETag names the revision.
func (a Ack) ETag() ETag { return ETag{a.Life, a.Revision} }

// Entity returns the address of an entity, which need not exist.
func (c *Client) Entity(pod, name string) Entity { return Entity{c: c, pod: pod, name: name} }

// Pod returns the name of the entity's pod, Name its own.
func (e Entity) Pod() string { return e.pod }

// Name returns the entity's name.
func (e Entity) Name() string { return e.name }

// IfMatch has writes happen only at one of these revisions; else they fail with
// StaleRevision.
func (e Entity) IfMatch(tags ...ETag) Entity { e.match = tags; return e }

// IfNoneMatch has writes happen at none of these revisions; else they fail with
// ConditionFailed.
func (e Entity) IfNoneMatch(tags ...ETag) Entity { e.noneMatch = tags; return e }

// IfExists has writes happen only if the entity exists.
func (e Entity) IfExists() Entity { e.there = true; return e }

// IfAbsent has writes happen only if the entity does not exist.
func (e Entity) IfAbsent() Entity { e.absent = true; return e }

// Where has writes happen only if an expression in CEL holds for the entity; else
// they fail with ConditionFailed.
func (e Entity) Where(cel string) Entity { e.where = cel; return e }

// WithKey gives the next write its Idempotency-Key, in place of one that nobody
// has: whoever sends it again, even another process, has the first one's answer.
func (e Entity) WithKey(key string) Entity { e.key = key; return e }

// Timeout bounds the time in which the entity must have answered each try, up to
// a minute. Otherwise it is 10 s, or what the context leaves.
func (e Entity) Timeout(d time.Duration) Entity { e.timeout = d; return e }

// String returns the pod and the name.
func (e Entity) String() string { return e.pod + "/" + e.name }

func podPath(pod string) string { return "/v1/pods/" + segment(pod) }

func (e Entity) path() string { return podPath(e.pod) + "/entities/" + segment(e.name) }

// segment escapes a name for a path. Dots alone would be cleaned away.
func segment(name string) string {
	if name == "." || name == ".." {
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// statePath is the path of what stands at a JSON pointer (RFC 6901) in the state.
func (e Entity) statePath(pointer string) (string, error) {
	if pointer == "" {
		return e.path() + "/state", nil
	}
	if pointer[0] != '/' {
		return "", fmt.Errorf("%q is not a JSON pointer: it is empty or starts with /", pointer)
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, t := range tokens {
		tokens[i] = segment(t)
	}
	return e.path() + "/state/" + strings.Join(tokens, "/"), nil
}

// request makes a request about the entity, with its conditions if it writes.
func (e Entity) request(ctx context.Context, method, path string) request {
	r := request{method: method, path: path, repeats: always}
	if d := e.timeout; d > 0 {
		r.ask("timeout", d.String())
	} else if end, has := ctx.Deadline(); has {
		if left := time.Until(end).Truncate(time.Millisecond); left > 0 && left < 10*time.Second {
			r.ask("timeout", left.String())
		}
	}
	if method == http.MethodGet {
		return r
	}
	if e.there {
		r.set("If-Match", "*")
	}
	if e.match != nil {
		r.set("If-Match", quoted(e.match))
	}
	if e.absent {
		r.set("If-None-Match", "*")
	}
	if e.noneMatch != nil {
		r.set("If-None-Match", quoted(e.noneMatch))
	}
	if e.where != "" {
		r.ask("condition", e.where)
	}
	return r
}

func quoted(tags []ETag) string {
	texts := make([]string, len(tags))
	for i, t := range tags {
		texts[i] = `"` + t.String() + `"`
	}
	return strings.Join(texts, ", ")
}

// write makes a request that may be repeated, since it has a key.
func (e Entity) write(ctx context.Context, method, path, bodyType string, body any) (request, error) {
	r := e.request(ctx, method, path)
	if r.set(keyHeader, e.key); e.key == "" {
		r.set(keyHeader, newKey())
	}
	if bodyType == "" {
		return r, nil
	}
	data, err := json.Marshal(body)
	if err != nil {
		return r, fmt.Errorf("%s: the body: %w", &r, err)
	}
	r.body, r.bodyType = data, bodyType
	return r, nil
}

// Get reads an entity. It sees every write that was acknowledged before.
func Get[S any](ctx context.Context, e Entity) (Twin[S], error) {
	var t Twin[S]
	a, err := e.c.do(ctx, e.request(ctx, http.MethodGet, e.path()))
	if err != nil {
		return t, err
	}
	return t, a.into(&t)
}

// GetNewer is Get that reads nothing if the entity is still at a revision; then
// it reports false.
func GetNewer[S any](ctx context.Context, e Entity, than ETag) (Twin[S], bool, error) {
	var t Twin[S]
	r := e.request(ctx, http.MethodGet, e.path())
	r.set("If-None-Match", quoted([]ETag{than}))
	a, err := e.c.do(ctx, r)
	if err != nil || a.status == http.StatusNotModified {
		return t, false, err
	}
	return t, true, a.into(&t)
}

// Value reads what stands at a JSON pointer in an entity's state, and the
// revision that it is of. It fails with NoSuchValue.
func Value[V any](ctx context.Context, e Entity, pointer string) (V, ETag, error) {
	var v V
	path, err := e.statePath(pointer)
	if err != nil {
		return v, ETag{}, err
	}
	a, err := e.c.do(ctx, e.request(ctx, http.MethodGet, path))
	if err != nil {
		return v, ETag{}, err
	}
	if err := a.into(&v); err != nil {
		return v, ETag{}, err
	}
	tag, err := ParseETag(a.header.Get("ETag"))
	return v, tag, err
}

// Delete ends the entity's life, durably. It is repeated only where that can end
// no other life: with IfMatch, or when the server has done nothing.
func (e Entity) Delete(ctx context.Context) error { return e.end(ctx, false) }

// Discard is Delete that gives up the messages that the entity has sent and that
// are not delivered yet, for which Delete waits.
func (e Entity) Discard(ctx context.Context) error { return e.end(ctx, true) }

func (e Entity) end(ctx context.Context, discard bool) error {
	r := e.request(ctx, http.MethodDelete, e.path())
	if discard {
		r.ask("discard", "true")
	}
	if len(e.match) == 0 {
		r.repeats = undone
	}
	for try, unsure := 0, false; ; try++ {
		_, err := e.c.once(ctx, &r)
		if err == nil || unsure && errors.Is(err, NoSuchEntity) {
			return nil // gone, by this try or the one before
		}
		unsure = unsure || errors.Is(err, OutcomeUnknown)
		if !r.again(err) || !e.c.pause(ctx, try, err) {
			return err
		}
	}
}

// Rebuild has an event-sourced entity made again from its events.
func (e Entity) Rebuild(ctx context.Context) (Ack, error) {
	r := e.request(ctx, http.MethodPost, e.path()+"/rebuild")
	r.header = nil // it takes no conditions
	r.query.Del("condition")
	return e.c.acknowledged(ctx, r)
}

// acknowledged sends a request that is answered with an Ack.
func (c *Client) acknowledged(ctx context.Context, r request) (Ack, error) {
	var ack Ack
	a, err := c.do(ctx, r)
	if err != nil {
		return ack, err
	}
	ack.Created = a.status == http.StatusCreated
	if len(a.body) == 0 { // the ETag says it
		tag, err := ParseETag(a.header.Get("ETag"))
		ack.Life, ack.Revision = tag.Life, tag.Revision
		return ack, err
	}
	return ack, a.into(&ack)
}
