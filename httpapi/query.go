package httpapi

import (
	"context"
	"encoding/base64"
	"net/url"
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

// query reads a request's query strictly: what cannot be parsed is refused.
func (c *call) query() (url.Values, error) {
	q, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, refuse(CodeBadQuery, "the query is not percent-encoded correctly: "+err.Error())
	}
	return q, nil
}

// timeout reads how long the request may wait for its answer.
func (c *call) timeout() (time.Duration, error) {
	q, err := c.query()
	if err != nil || !q.Has("timeout") {
		return defaultTimeout, err
	}
	d, err := time.ParseDuration(q.Get("timeout"))
	if err != nil || d <= 0 || d > maxTimeout {
		return 0, refuse(CodeBadQuery, "timeout is a duration such as 500ms or 5s, above 0 and at most 60s")
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
	if cursor := q.Get("cursor"); cursor != "" {
		name, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil {
			return o, refuse(CodeBadQuery, "cursor is not one that a list gave as next")
		}
		o.After = string(name)
	}
	o.Prefix = q.Get("prefix")
	return o, nil
}

// cursor is the opaque form of the name that a page ended with.
func cursor(name string) string { return base64.RawURLEncoding.EncodeToString([]byte(name)) }
