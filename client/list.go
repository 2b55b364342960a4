package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
)

// ListOptions selects entities by name. The zero value takes all.
type ListOptions struct {
	// Prefix is what the names begin with.
	Prefix string
	// Page is how many entities are read at a time; 0 leaves it to the server.
	Page int
}

// List goes through a pod's entities by name, reading page after page: each as it
// is acknowledged when its page is read. An entity that cannot be read comes with
// an error of the code Quarantined, behind which it goes on. Any other error is
// the last that comes.
func List[S any](ctx context.Context, c *Client, pod string, o ListOptions) iter.Seq2[Twin[S], error] {
	q := url.Values{}
	if o.Prefix != "" {
		q.Set("prefix", o.Prefix)
	}
	number(q, "limit", o.Page)
	return func(yield func(Twin[S], error) bool) {
		for raw, err := range rawPages(ctx, c, podPath(pod)+"/entities", q) {
			if err != nil {
				yield(Twin[S]{}, err)
				return
			}
			t, err := parseTwin[S](raw, pod)
			if more := yield(t, err); !more || err != nil && !isQuarantined(err) {
				return
			}
		}
	}
}

func isQuarantined(err error) bool {
	e, is := err.(*Error) //nolint:errorlint // it is made here
	return is && e.Code == Quarantined
}

// parseTwin reads an item of a list, which may be of an entity that cannot be
// read.
func parseTwin[S any](raw []byte, pod string) (Twin[S], error) {
	if bytes.Contains(raw, []byte(`"quarantined"`)) { // which a state may have, too
		var u Unreadable
		if err := json.Unmarshal(raw, &u); err == nil && u.Quarantined != "" {
			u.Pod = cmp.Or(u.Pod, pod)
			return Twin[S]{Pod: u.Pod, Name: u.Name}, u.failure()
		}
	}
	var t Twin[S]
	if err := json.Unmarshal(raw, &t); err != nil {
		return t, fmt.Errorf("the state of %s/%s does not fit a %T: %w", t.Pod, t.Name, t.State, err)
	}
	return t, nil
}

func (u *Unreadable) failure() error {
	return &Error{Code: Quarantined, Detail: u.Pod + "/" + u.Name + ": " + u.Quarantined}
}
