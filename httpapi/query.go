package httpapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"io"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/twinsrv/twinsrv/persist"
)

const (
	defaultTimeout = 10 * time.Second
	maxTimeout     = time.Minute
	defaultLimit   = 100
	maxLimit       = 1000
)

// query reads a request's query strictly: what cannot be parsed is refused, and
// so is a parameter that the operation does not know or that stands twice. One
// that is passed over could be a condition that somebody relies on.
func (c *call) query() (url.Values, error) {
	if c.r.URL.RawQuery == "" {
		return nil, nil
	}
	q, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, refuse(CodeBadQuery, "the query is not percent-encoded correctly: "+err.Error())
	}
	for name, values := range q {
		switch {
		case !slices.Contains(c.op.query, name):
			return nil, refuse(CodeBadQuery, fmt.Sprintf("there is no parameter %q here; /openapi.json lists what there is", name))
		case len(values) > 1:
			return nil, refuse(CodeBadQuery, fmt.Sprintf("the parameter %q stands twice", name))
		}
	}
	return q, nil
}

// timeout reads how long the request may wait for its answer: the smaller of
// what the query and what Prefer say.
func (c *call) timeout() (time.Duration, error) {
	d, err := c.duration("timeout", defaultTimeout, maxTimeout)
	if err != nil {
		return 0, err
	}
	p, err := c.preferences()
	if err != nil || !p.waits || p.async {
		return d, err
	}
	if p.wait <= 0 {
		return 0, refuse(CodeBadPreference, "without respond-async, wait is at least one second")
	}
	c.w.Header().Add(appliedHeader, p.applied())
	return min(d, p.wait), nil
}

// duration reads a span of time that is more than nothing.
func (c *call) duration(name string, otherwise, most time.Duration) (time.Duration, error) {
	q, err := c.query()
	if err != nil || !q.Has(name) {
		return otherwise, err
	}
	d, err := time.ParseDuration(q.Get(name))
	if err != nil || d <= 0 || d > most {
		return 0, refuse(CodeBadQuery, fmt.Sprintf("%s is a duration such as 500ms or 5s, above 0 and at most %v", name, most))
	}
	return d, nil
}

// bounded returns the request's context, ended by its timeout.
func (c *call) bounded() (context.Context, context.CancelFunc, error) {
	d, err := c.timeout()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := c.api.pods.System().WithTimeout(c.r.Context(), d)
	return ctx, cancel, nil
}

// count reads a whole number that is more than nothing.
func (c *call) count(name string, otherwise, most int) (int, error) {
	q, err := c.query()
	if err != nil || !q.Has(name) {
		return otherwise, err
	}
	n, err := strconv.Atoi(q.Get(name))
	if err != nil || n < 1 || n > most {
		return 0, refuse(CodeBadQuery, fmt.Sprintf("%s is a number from 1 to %d", name, most))
	}
	return n, nil
}

// inTime is a read's error, or what ended its time: that can look like a fault of
// the store.
func inTime(ctx context.Context, err error) error {
	if ended := ctx.Err(); err != nil && ended != nil {
		return ended
	}
	return err
}

// flag reads a boolean that is false unless set.
func (c *call) flag(name string) (bool, error) {
	q, err := c.query()
	if err != nil || !q.Has(name) {
		return false, err
	}
	b, err := strconv.ParseBool(q.Get(name))
	if err != nil {
		return false, refuse(CodeBadQuery, name+" is true or false")
	}
	return b, nil
}

// page reads limit, cursor and prefix.
func (c *call) page() (persist.ListOptions, error) {
	o := persist.ListOptions{Limit: defaultLimit}
	q, err := c.query()
	if err != nil {
		return o, err
	}
	if q.Has("limit") {
		if o.Limit, err = strconv.Atoi(q.Get("limit")); err != nil || o.Limit < 1 || o.Limit > maxLimit {
			return o, refuse(CodeBadQuery, "limit is a number from 1 to 1000")
		}
	}
	if o.After, err = c.behind(q.Get("cursor")); err != nil {
		return o, err
	}
	o.Prefix = q.Get("prefix")
	return o, nil
}

// cursor is the opaque form of the name that a page of this list ended with.
func (c *call) cursor(name string) string {
	return base64.RawURLEncoding.EncodeToString(append(c.list(), name...))
}

// behind is the name behind which a cursor goes on, which must be one of this
// list.
func (c *call) behind(cursor string) (name string, err error) {
	if cursor == "" {
		return "", nil
	}
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	after, of := bytes.CutPrefix(data, c.list())
	if err != nil || !of {
		return "", refuse(CodeBadQuery, "cursor is not one that this list gave as next; leave it out to begin with the first page")
	}
	return string(after), nil
}

// list tells the list of the request from others, in a few bytes.
func (c *call) list() []byte {
	h := fnv.New32a()
	for _, part := range []string{c.op.id, c.pod, c.entity} {
		_, _ = io.WriteString(h, part+"\x00") // never fails
	}
	return h.Sum(nil)
}
