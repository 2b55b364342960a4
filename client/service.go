package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// Health says whether the server serves, and on what.
type Health struct {
	Status      string `json:"status"`
	Store       string `json:"store"`
	Version     string `json:"version"` // of the server's program
	Pods        int    `json:"pods"`
	Active      int    `json:"active"` // entities in memory
	Quarantined int    `json:"quarantined"`
}

// Readiness says that the server takes everything.
type Readiness struct {
	Status string `json:"status"`
	Pods   int    `json:"pods"`
	// ReadOnly are the pods whose types the program does not have.
	ReadOnly []string `json:"readOnly"`
}

// Health asks once whether the server serves.
func (c *Client) Health(ctx context.Context) (h Health, err error) {
	return h, c.probe(ctx, "/healthz", &h)
}

// Ready asks once whether the server takes everything. It fails with NotReady,
// StoreUnavailable or Stopping when it does not.
func (c *Client) Ready(ctx context.Context) (r Readiness, err error) {
	return r, c.probe(ctx, "/readyz", &r)
}

// probe asks without a repeat: a failure is the answer.
func (c *Client) probe(ctx context.Context, path string, into any) error {
	a, err := c.once(ctx, &request{method: http.MethodGet, path: path})
	if err != nil {
		return err
	}
	return a.into(into)
}

// Limits are the bounds that requests meet. Durations are in seconds.
type Limits struct {
	MaxBody        int64   `json:"maxBody"`
	MaxLine        int64   `json:"maxLine"`
	MaxBatch       int     `json:"maxBatch"`
	MaxBatchBody   int64   `json:"maxBatchBody"`
	MaxConditions  int     `json:"maxConditions"` // bytes of the different conditions of a batch
	DefaultTimeout float64 `json:"defaultTimeout"`
	MaxTimeout     float64 `json:"maxTimeout"`
	DefaultLimit   int     `json:"defaultLimit"`
	MaxLimit       int     `json:"maxLimit"`
	MaxName        int     `json:"maxName"`
	MaxPodName     int     `json:"maxPodName"`
	MaxMessageID   int     `json:"maxMessageID"`
	MaxWaiting     int     `json:"maxWaiting"`
	MaxWatchers    int     `json:"maxWatchers"`
	MaxFilters     int     `json:"maxFilters"` // bytes of the filters of all watches
	MaxFutures     int     `json:"maxFutures"`
	FutureLife     float64 `json:"futureLife"`
	Heartbeat      float64 `json:"heartbeat"`
	DeadLetters    int     `json:"deadLetters"`
}

// Limits reads the bounds that requests meet.
func (c *Client) Limits(ctx context.Context) (l Limits, err error) {
	return l, c.getJSON(ctx, "/v1/limits", nil, &l)
}

// Unreadable is an entity that cannot be read, or, without a name, a pod whose
// definition cannot.
type Unreadable struct {
	Pod  string `json:"pod"`
	Name string `json:"name"`
	// Quarantined is the reason.
	Quarantined string `json:"quarantined"`
	// Record is what is left of it, if anything is and it was asked for.
	Record *Record `json:"record"`
}

// Record is the record of an entity that cannot be read.
type Record struct {
	Life     uint64    `json:"life"`
	Revision uint64    `json:"revision"`
	Changed  time.Time `json:"changed"`
	Schema   uint32    `json:"schema"` // the version of the type that wrote it
	Codec    string    `json:"codec"`
	Size     int       `json:"size"`
	State    []byte    `json:"state"` // the first 64 KiB, as stored
}

// Quarantine goes through the entities that were found to be unreadable. An
// error is the last that comes.
func (c *Client) Quarantine(ctx context.Context) iter.Seq2[Unreadable, error] {
	return pages[Unreadable](ctx, c, "/v1/quarantine", nil)
}

func (e Entity) quarantinePath() string {
	return "/v1/quarantine/" + segment(e.pod) + "/" + segment(e.name)
}

// Unreadable says why the entity cannot be read, and what is left of it. It fails
// with NotQuarantined when it can be.
func (e Entity) Unreadable(ctx context.Context) (u Unreadable, err error) {
	return u, e.c.getJSON(ctx, e.quarantinePath(), url.Values{}, &u)
}

// Retry has a quarantined entity read again, and returns it. It fails with
// Quarantined when it still cannot be read.
func (e Entity) Retry(ctx context.Context) (Twin[json.RawMessage], error) {
	var t Twin[json.RawMessage]
	a, err := e.c.do(ctx, request{method: http.MethodPost, path: e.quarantinePath() + "/retry", repeats: always})
	if err != nil {
		return t, err
	}
	return t, a.into(&t)
}

// RemoveUnreadable ends the life of an entity that cannot be read, durably. One
// that can be is left alone: NotQuarantined.
func (e Entity) RemoveUnreadable(ctx context.Context) error {
	_, err := e.c.do(ctx, request{method: http.MethodDelete, path: e.quarantinePath()})
	return err
}

// DeadLetter is a message that reached nobody.
type DeadLetter struct {
	Number  uint64    `json:"number"`
	At      time.Time `json:"at"`
	To      string    `json:"to"`
	Message string    `json:"message"`
	Asked   bool      `json:"asked"` // somebody waited for an answer
	Reason  string    `json:"reason"`
}

// DeadLetters reads the last dead letters, oldest first, and how many there have
// been since the server started.
func (c *Client) DeadLetters(ctx context.Context) ([]DeadLetter, uint64, error) {
	var list struct {
		Items []DeadLetter `json:"items"`
		Count uint64       `json:"count"`
	}
	err := c.getJSON(ctx, "/v1/deadletters", nil, &list)
	return list.Items, list.Count, err
}

// Actor is one actor of the server.
type Actor struct {
	Path     string `json:"path"`
	Mailbox  int    `json:"mailbox"`  // messages that wait
	Capacity int    `json:"capacity"` // 0: any number may
	Children int    `json:"children"`
	Restarts int    `json:"restarts"`
	Failures int    `json:"failures"`
	Stopping bool   `json:"stopping"`
}

// Actors goes through the server's actors below a path, parents before their
// children, so many levels deep. An empty path is the root, a depth of 0 the
// server's choice. An error is the last that comes.
func (c *Client) Actors(ctx context.Context, path string, depth int) iter.Seq2[Actor, error] {
	q := url.Values{}
	number(q, "depth", depth)
	if path != "" {
		q.Set("path", path)
	}
	return pages[Actor](ctx, c, "/v1/actors", q)
}
