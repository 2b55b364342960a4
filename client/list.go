package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"strings"
)

// ListOptions selects entities. The zero value takes all, by name.
type ListOptions struct {
	// Prefix is what the names begin with.
	Prefix string
	// Filter is an expression in CEL that holds for the entities, such as
	// `state.celsius > 21.0`; one that lacks what it asks for is left out. Empty
	// takes all.
	Filter string
	// Select are the paths that are read, such as "state.celsius"; the rest of
	// a Twin is zero then. nil reads all.
	Select []string
	// Sort are the paths by whose values the entities come; one that begins with -
	// turns the order round. nil sorts by pod and name.
	Sort []string
	// Page is how many entities are read at a time; 0 leaves it to the server.
	Page int
}

func (o ListOptions) query() url.Values {
	q := url.Values{}
	for name, value := range map[string]string{
		"prefix": o.Prefix, "filter": o.Filter, "select": strings.Join(o.Select, ","), "sort": strings.Join(o.Sort, ","),
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	number(q, "limit", o.Page)
	return q
}

// List goes through a pod's entities, reading page after page: each as it is
// acknowledged when its page is read. An entity that cannot be read comes with an
// error of the code Quarantined, behind which it goes on. Any other error is the
// last that comes.
func List[S any](ctx context.Context, c *Client, pod string, o ListOptions) iter.Seq2[Twin[S], error] {
	return twins[S](ctx, c, podPath(pod)+"/entities", pod, o.query())
}

// ListAll is List of several pods; nil means all.
func ListAll[S any](ctx context.Context, c *Client, pods []string, o ListOptions) iter.Seq2[Twin[S], error] {
	q := o.query()
	if pods != nil {
		q.Set("pods", strings.Join(pods, ","))
	}
	return twins[S](ctx, c, "/v1/entities", "", q)
}

func twins[S any](ctx context.Context, c *Client, path, pod string, q url.Values) iter.Seq2[Twin[S], error] {
	return func(yield func(Twin[S], error) bool) {
		for raw, err := range rawPages(ctx, c, path, q) {
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
			return Twin[S]{Pod: cmp.Or(u.Pod, pod), Name: u.Name}, &Error{Code: Quarantined, Detail: u.Quarantined}
		}
	}
	var t Twin[S]
	if err := json.Unmarshal(raw, &t); err != nil {
		return t, fmt.Errorf("the state of %s/%s does not fit a %T: %w", t.Pod, t.Name, t.State, err)
	}
	return t, nil
}
