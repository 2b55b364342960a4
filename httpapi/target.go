package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/twinsrv/twinsrv/entity"
)

// target is what the path of a request names. Each name was decoded exactly
// once and not checked.
type target struct {
	pod, entity, message string
	pointer              string // the JSON pointer of the path's tokens behind state/
	future               string
}

// placeholder stands for a name in the path that is routed, so that no name can
// be taken for a part of the path, be cleaned away or be decoded again.
const placeholder = "-"

// resolve takes the names out of a request's path and returns the path to be
// routed by.
func resolve(u *url.URL) (path string, t target, err error) {
	// RawPath is the path as it was sent, and empty when that is the escaped
	// form of Path. EscapedPath alone will not do: it makes %2F a slash when
	// some other byte of the path was sent bare that should have been escaped.
	raw := u.RawPath
	if raw == "" {
		raw = u.EscapedPath()
	}
	parts := strings.Split(raw, "/")
	take := func(i int, prefix string, into *string) bool {
		if err != nil || len(parts) <= i || parts[i-1] != prefix {
			return false
		}
		if *into, err = url.PathUnescape(parts[i]); err != nil {
			err = refuse(CodeBadName, "the path is not percent-encoded correctly: "+err.Error())
		}
		parts[i] = placeholder
		return true
	}
	switch {
	case len(parts) <= 3 || parts[0] != "" || parts[1] != "v1":
	case parts[2] == "quarantine":
		if take(3, "quarantine", &t.pod) {
			take(4, placeholder, &t.entity)
		}
	case parts[2] == "futures":
		take(3, "futures", &t.future)
	case take(3, "pods", &t.pod) && take(5, "entities", &t.entity):
		if len(parts) > 7 && parts[6] == "state" && err == nil {
			t.pointer, err = pointerOf(parts[7:])
			parts = append(parts[:7], placeholder)
			break
		}
		take(7, "messages", &t.message)
	}
	return strings.Join(parts, "/"), t, err
}

type routeKey struct{}

// route is the context of a request that has been resolved: its own, its names,
// and the URL that it is routed by. They are made at once.
type route struct {
	context.Context
	target
	url url.URL
}

// Value returns the route itself for its key.
func (r *route) Value(key any) any {
	if _, is := key.(routeKey); is {
		return r
	}
	return r.Context.Value(key)
}

// routed returns the request with its path replaced by one to route by, and its
// names in its context.
func routed(r *http.Request) (*http.Request, error) {
	path, t, err := resolve(r.URL)
	if err != nil {
		return nil, err
	}
	to := &route{Context: r.Context(), target: t, url: *r.URL}
	to.url.Path, to.url.RawPath = path, ""
	r = r.WithContext(to)
	r.URL = &to.url
	return r, nil
}

// podPath returns the escaped path of a pod.
func podPath(pod string) string { return "/v1/pods/" + url.PathEscape(pod) }

// entityPath returns the escaped path of an entity.
func entityPath(pod, name string) string {
	return podPath(pod) + "/entities/" + url.PathEscape(name)
}

func (t target) checkPod() error { return entity.CheckPodName(t.pod) }

func (t target) checkEntity() error { return entity.CheckName(t.entity) }
