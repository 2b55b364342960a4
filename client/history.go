package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// HistoryOptions selects changes of an entity.
type HistoryOptions struct {
	// From and To bound the revisions, both inclusive; 0 is no bound.
	From, To uint64
	// Life is the life that is read; 0 is the present one.
	Life uint64
	// Earlier reads all lives that are kept, in place of Life.
	Earlier bool
	// Page is how many changes are read at a time; 0 leaves it to the server.
	Page int
}

// Revision is one change of an entity.
type Revision[S any] struct {
	Life     uint64    `json:"life"`
	Revision uint64    `json:"revision"`
	Position uint64    `json:"position"`
	Changed  time.Time `json:"changed"`
	// Type is the message that led to the change, or the event of an event-sourced
	// entity, or "deleted".
	Type    string `json:"type"`
	Deleted bool   `json:"deleted"`
	// State is the state that the change led to; nil where it is not known.
	State *S `json:"state"`
	// Raised is the event of an event-sourced entity.
	Raised json.RawMessage `json:"event"`
	// Unreadable says why the state is missing.
	Unreadable string `json:"unreadable"`
}

// History goes through what is kept of an entity's changes, oldest first, page
// after page. An error is the last that comes.
func History[S any](ctx context.Context, e Entity, o HistoryOptions) iter.Seq2[Revision[S], error] {
	q := url.Values{}
	number(q, "limit", o.Page)
	for name, n := range map[string]uint64{"from": o.From, "to": o.To, "life": o.Life} {
		if n > 0 {
			q.Set(name, strconv.FormatUint(n, 10))
		}
	}
	if o.Earlier {
		q.Set("earlier", "true")
	}
	return pages[Revision[S]](ctx, e.c, e.path()+"/history", q)
}

// At reads an entity's state as it was at a revision of its present life. It
// fails with NoSuchRevision, or with RevisionDropped when it is not kept any
// more.
func At[S any](ctx context.Context, e Entity, revision uint64) (S, ETag, error) {
	return then[S](ctx, e, "revision", strconv.FormatUint(revision, 10))
}

// AtTime reads an entity's state as it was at a time. It fails as At does.
func AtTime[S any](ctx context.Context, e Entity, t time.Time) (S, ETag, error) {
	return then[S](ctx, e, "at", t.UTC().Format(time.RFC3339Nano))
}

// GetAt is At with all that Get tells.
func GetAt[S any](ctx context.Context, e Entity, revision uint64) (Twin[S], error) {
	return getThen[S](ctx, e, "revision", strconv.FormatUint(revision, 10))
}

// GetAtTime is AtTime with all that Get tells.
func GetAtTime[S any](ctx context.Context, e Entity, t time.Time) (Twin[S], error) {
	return getThen[S](ctx, e, "at", t.UTC().Format(time.RFC3339Nano))
}

func getThen[S any](ctx context.Context, e Entity, name, value string) (Twin[S], error) {
	var t Twin[S]
	r := e.request(ctx, http.MethodGet, e.path())
	r.ask(name, value)
	a, err := e.c.do(ctx, r)
	if err != nil {
		return t, err
	}
	return t, a.into(&t)
}

func then[S any](ctx context.Context, e Entity, name, value string) (S, ETag, error) {
	var s S
	r := e.request(ctx, http.MethodGet, e.path()+"/state")
	r.ask(name, value)
	a, err := e.c.do(ctx, r)
	if err != nil {
		return s, ETag{}, err
	}
	if err := a.into(&s); err != nil {
		return s, ETag{}, err
	}
	tag, err := ParseETag(a.header.Get("ETag"))
	return s, tag, err
}

// Bucket is what a number of an entity's state was in a span of time.
type Bucket struct {
	Start time.Time `json:"start"`
	Count int       `json:"count"` // of changes
	Min   float64   `json:"min"`
	Max   float64   `json:"max"`
	Avg   float64   `json:"avg"` // over the changes
	Last  float64   `json:"last"`
}

// Buckets reads how a number of the entity's state, at a path such as
// "state.celsius", changed from a time to another, in buckets of a width; empty
// ones are left out. A zero to is now. since is not zero when changes before it
// are not kept any more.
func (e Entity) Buckets(ctx context.Context, path string, from, to time.Time, width time.Duration) (list []Bucket, since time.Time, err error) {
	q := url.Values{"path": {path}, "from": {from.UTC().Format(time.RFC3339Nano)}, "width": {width.String()}}
	if !to.IsZero() {
		q.Set("to", to.UTC().Format(time.RFC3339Nano))
	}
	var answer struct {
		Items []Bucket  `json:"items"`
		Since time.Time `json:"since"`
	}
	err = e.c.getJSON(ctx, e.path()+"/history/buckets", q, &answer)
	return answer.Items, answer.Since, err
}
