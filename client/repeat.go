package client

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"time"
)

const keyHeader = "Idempotency-Key"

// newKey returns an Idempotency-Key that nobody else has.
func newKey() string { return rand.Text() }

// again reports whether a request that failed so may be sent again.
func (r *request) again(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var e *Error
	if !errors.As(err, &e) {
		// It did not reach the server, or it only reads.
		var dial *net.OpError
		return r.repeats == always || errors.As(err, &dial) && dial.Op == "dial"
	}
	switch e.Code {
	case MailboxFull, TooManyWatchers, StoreUnavailable, Overloaded, Stopping, Busy:
		return true // nothing was done
	case OutcomeUnknown:
		return r.repeats == always
	case "":
		return e.Status == http.StatusTooManyRequests || !r.writes() && e.Status >= http.StatusBadGateway
	}
	return false
}

// pause waits before the next try, and reports whether there is to be one.
func (c *Client) pause(ctx context.Context, try int, err error) bool {
	if try >= c.cfg.Repeats {
		return false
	}
	d := backoff(c.cfg.Pause, c.cfg.MaxPause, try)
	var e *Error
	if errors.As(err, &e) {
		d = max(d, e.RetryAfter)
	}
	return sleep(ctx, d)
}

// backoff is the pause behind so many tries: between half and three halves of
// one that doubles with each, so that clients do not come back all at once.
func backoff(first, most time.Duration, tries int) time.Duration {
	d := most
	if tries < 30 && first < most>>tries {
		d = first << tries
	}
	return d/2 + mathrand.N(d+1)
}

// sleep waits, unless the context would end before; it reports whether it has
// waited.
func sleep(ctx context.Context, d time.Duration) bool {
	if end, has := ctx.Deadline(); has && time.Until(end) <= d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
