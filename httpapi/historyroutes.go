package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/pod"
	"github.com/twinsrv/twinsrv/snapshot"
)

// HistoryList is a page of an entity's changes, oldest first.
type HistoryList struct {
	Items []HistoryLine `json:"items"`
	Next  string        `json:"next,omitempty"`
	// Dropped says that retention has dropped the beginning of the first life that
	// was read for the page. Oldest is what is left of it, if anything is.
	Dropped bool            `json:"dropped,omitempty"`
	Oldest  *OldestRevision `json:"oldest,omitempty"`
}

// OldestRevision is the oldest revision of a life that the history keeps.
type OldestRevision struct {
	Life     uint64    `json:"life"`
	Revision uint64    `json:"revision"`
	Changed  time.Time `json:"changed"`
}

// HistoryLine is one change of an entity.
type HistoryLine struct {
	Life     uint64    `json:"life"`
	Revision uint64    `json:"revision"`
	Position uint64    `json:"position" doc:"orders all changes of the store"`
	Changed  time.Time `json:"changed"`
	// Type is the message that led to the change, or the event of an event-sourced
	// entity, or "deleted".
	Type    string `json:"type"`
	Deleted bool   `json:"deleted,omitempty"`
	// State is the state that the change led to.
	State json.RawMessage `json:"state,omitempty"`
	// Event is the event of an event-sourced entity.
	Event json.RawMessage `json:"event,omitempty"`
	// Unreadable says why the state is missing.
	Unreadable string `json:"unreadable,omitempty"`
}

// BucketList are the buckets of a number of a state; empty ones are left out.
type BucketList struct {
	Items []BucketLine `json:"items"`
	// Since is from when on changes are kept, if some that were asked for are
	// not.
	Since *time.Time `json:"since,omitempty"`
}

// BucketLine is one span of time.
type BucketLine struct {
	Start time.Time `json:"start"`
	Count int       `json:"count" doc:"changes in the span whose states have the number"`
	Min   float64   `json:"min"`
	Max   float64   `json:"max"`
	Avg   float64   `json:"avg" doc:"over the changes"`
	Last  float64   `json:"last"`
}

func getHistory(c *call) error {
	p, err := c.theEntity()
	if err != nil {
		return err
	}
	o, err := c.historyOptions()
	if err != nil {
		return err
	}
	ctx, cancel, err := c.bounded()
	if err != nil {
		return err
	}
	defer cancel()
	page, err := p.History(ctx, c.entity, o)
	if errors.Is(err, entity.ErrNotFound) && ctx.Err() == nil {
		return refuse(CodeNoSuchEntity, err.Error()+"; if it was deleted, ?earlier=true shows what the history keeps of it")
	}
	if err != nil {
		return inTime(ctx, err)
	}
	list := HistoryList{Items: []HistoryLine{}}
	if page.Next != (entity.ETag{}) {
		list.Next = c.cursor(page.Next.String())
	}
	if list.Dropped = page.Dropped; page.Dropped && page.Oldest != (entity.ETag{}) {
		list.Oldest = &OldestRevision{Life: page.Oldest.Life, Revision: page.Oldest.Revision, Changed: page.OldestTime.UTC()}
	}
	for _, r := range page.Revisions {
		l := HistoryLine{
			Life: r.Life, Revision: r.Revision, Position: r.Position, Changed: r.Time.UTC(), Type: r.Type, Deleted: r.Deleted,
			State: r.State, Event: r.Data,
		}
		if r.Err != nil {
			l.Unreadable = r.Err.Error()
		}
		list.Items = append(list.Items, l)
	}
	return c.json(http.StatusOK, list)
}

func (c *call) historyOptions() (o pod.HistoryOptions, err error) {
	if o.Limit, err = c.count("limit", defaultLimit, maxLimit); err != nil {
		return o, err
	}
	if o.From, err = c.number("from"); err != nil {
		return o, err
	}
	if o.To, err = c.number("to"); err != nil {
		return o, err
	}
	if o.Life, err = c.number("life"); err != nil {
		return o, err
	}
	if o.Earlier, err = c.flag("earlier"); err != nil {
		return o, err
	}
	q, err := c.query()
	if err != nil || q.Get("cursor") == "" {
		return o, err
	}
	after, err := c.behind(q.Get("cursor"))
	if err != nil {
		return o, err
	}
	if o.After, err = entity.ParseETag(after); err != nil {
		return o, refuse(CodeBadQuery, "cursor is not one that this list gave as next; leave it out to begin with the first page")
	}
	return o, nil
}

// number reads a number that counts something from 1; 0 if it is left out.
func (c *call) number(name string) (uint64, error) {
	q, err := c.query()
	if err != nil || !q.Has(name) {
		return 0, err
	}
	n, err := strconv.ParseUint(q.Get(name), 10, 64)
	if err != nil || n == 0 {
		return 0, refuse(CodeBadQuery, name+" is a whole number from 1 on")
	}
	return n, nil
}

// time reads a time; zero if it is left out.
func (c *call) time(name string) (time.Time, error) {
	q, err := c.query()
	if err != nil || !q.Has(name) {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339Nano, q.Get(name))
	if t = t.UTC(); err == nil && t.IsZero() {
		return t.Add(1), nil // the zero one is for what is left out, and nothing was then either
	}
	if err != nil {
		return t, refuse(CodeBadQuery, name+" is a time as in RFC 3339, such as 2026-01-31T12:00:00Z; a + in it is written %2B")
	}
	return t, nil
}

// viewOf reads an entity as it is, or as it was at the revision or the time that
// the query names.
func (c *call) viewOf(ctx context.Context, p *pod.Pod) (pod.View, error) {
	revision, err := c.number("revision")
	if err != nil {
		return pod.View{}, err
	}
	at, err := c.time("at")
	switch {
	case err != nil:
		return pod.View{}, err
	case revision > 0 && !at.IsZero():
		return pod.View{}, refuse(CodeBadQuery, "revision and at both say when: give one of them")
	case revision > 0:
		return p.At(ctx, c.entity, revision)
	case !at.IsZero():
		return p.AtTime(ctx, c.entity, at)
	}
	return p.Get(ctx, c.entity)
}

func getBuckets(c *call) error {
	p, err := c.theEntity()
	if err != nil {
		return err
	}
	r, err := c.bucketRequest()
	if err != nil {
		return err
	}
	ctx, cancel, err := c.bounded()
	if err != nil {
		return err
	}
	defer cancel()
	b, err := p.Buckets(ctx, c.entity, r)
	if errors.Is(err, pod.ErrBuckets) {
		return refuse(CodeBadQuery, err.Error())
	}
	if err != nil {
		return inTime(ctx, err)
	}
	list := BucketList{Items: []BucketLine{}}
	if !b.Since.IsZero() {
		since := b.Since.UTC()
		list.Since = &since
	}
	for _, x := range b.Buckets {
		list.Items = append(list.Items, BucketLine{Start: x.Start.UTC(), Count: x.Count, Min: x.Min, Max: x.Max, Avg: x.Avg, Last: x.Last})
	}
	return c.json(http.StatusOK, list)
}

func (c *call) bucketRequest() (r pod.BucketRequest, err error) {
	if r.Width, err = c.duration("width", time.Hour, 100*365*24*time.Hour); err != nil {
		return r, err
	}
	if r.From, err = c.time("from"); err != nil {
		return r, err
	}
	if r.To, err = c.time("to"); err != nil {
		return r, err
	}
	q, err := c.query()
	switch {
	case err != nil:
		return r, err
	case q.Get("path") == "":
		return r, refuse(CodeBadQuery, fmt.Sprintf("path is the place of a number in the state, such as %q", "state.celsius"))
	case r.From.IsZero():
		return r, refuse(CodeBadQuery, "from is the time at which the first bucket begins")
	}
	path, err := filter.ParsePath(q.Get("path"))
	if err != nil {
		return r, badFilter("path", err)
	}
	var s filter.Subject
	r.Value = func(v *pod.View) (float64, bool) {
		resetTo(&s, v)
		value, _ := path.Value(&s)
		x, is := value.Float()
		return max(-math.MaxFloat64, min(x, math.MaxFloat64)), is // as queries tell what is beyond
	}
	return r, nil
}

// HistoryDescription is what the history of a pod's entities keeps.
type HistoryDescription struct {
	// Changes is how many of the store's last changes are kept.
	Changes uint64 `json:"changes"`
	// Age is how long changes are kept; left out, age drops none.
	Age string `json:"age,omitempty"`
	// Dropped is the position through which changes may have been dropped, and
	// Position the newest one of the store.
	Dropped  uint64 `json:"dropped"`
	Position uint64 `json:"position"`
	// Volatile says that it is of a volatile pod, whose changes have no positions:
	// those above are 0.
	Volatile bool `json:"volatile,omitempty"`
}

// withHistory adds to a description what the history keeps. A store that is down
// leaves it out.
func (c *call) withHistory(d PodDescription, p *pod.Pod) PodDescription {
	ctx, cancel := c.api.pods.System().WithTimeout(c.r.Context(), defaultTimeout)
	defer cancel()
	r, err := p.Retention(ctx)
	if err != nil {
		return d
	}
	d.History = &HistoryDescription{Changes: r.Changes, Dropped: r.Through, Position: r.Position, Volatile: r.Volatile}
	if r.Age > 0 {
		d.History.Age = r.Age.String()
	}
	return d
}

// resetTo turns a subject to a view.
func resetTo(s *filter.Subject, v *pod.View) {
	codec, state := v.Encoded()
	s.Reset(v.Pod, v.Name, &snapshot.Record{Life: v.Life, Revision: v.Revision, Changed: v.Changed, Codec: codec, State: state})
}
