package pod

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/twinsrv/twinsrv/filter"
)

// A found entity's key sorts as the query does: the values at the paths of its
// order, then its pod and its name. The key of a page's last entity is all that
// the next page needs: what lies behind it comes next, whatever happened to the
// entity itself.

// keyText is how many bytes of a text a key has: what is equal so far is in the
// order of what comes next. So no key, and no cursor, is as large as a state.
const keyText = 1024

// appendKey appends the key of the subject's entity.
func (s *search) appendKey(dst []byte, pod, name string) []byte {
	for i := range s.query.Sort {
		o := &s.query.Sort[i]
		v, _ := s.value(&o.Path).Cut(keyText)
		start := len(dst)
		dst = v.AppendKey(dst)
		if o.Descending {
			filter.Descend(dst[start:])
		}
	}
	return nameKey(dst, pod, name)
}

func nameKey(dst []byte, pod, name string) []byte {
	return filter.AppendTextKey(filter.AppendTextKey(dst, pod), name)
}

// cursorMark begins the cursors of queries, so that none of a listing is taken
// for one: those are without a full stop.
const cursorMark = "q."

// id tells the cursors of this query from those of others. What is shown of an
// entity, and how many, may change from page to page.
func (s *search) id() []byte {
	h, q := fnv.New64a(), &s.query
	note := func(format string, args ...any) { _, _ = fmt.Fprintf(h, format, args...) }
	note("%t %d %q %q", s.many, len(s.pods), s.pods, q.Prefix)
	if q.Filter != nil {
		note(" %q", q.Filter)
	}
	for _, o := range q.Sort {
		note(" %s %t", o.Path, o.Descending)
	}
	return h.Sum(nil)
}

// cursor writes the cursor behind an entity: its key, or without an order where
// it stands.
func (s *search) cursor(f *candidate) string {
	at := f.key
	switch {
	case len(s.query.Sort) > 0:
	case s.many:
		at = []byte(f.view.Pod + "/" + f.view.Name)
	default:
		at = []byte(f.view.Name)
	}
	return cursorMark + base64.RawURLEncoding.EncodeToString(append(s.id(), at...))
}

// start reads the query's cursor.
func (s *search) start() error {
	if s.query.Cursor == "" {
		return nil
	}
	text, marked := strings.CutPrefix(s.query.Cursor, cursorMark)
	b, err := base64.RawURLEncoding.DecodeString(text)
	at, ours := bytes.CutPrefix(b, s.id())
	if !marked || err != nil || !ours || len(at) == 0 {
		return fmt.Errorf("%w: %q", ErrCursor, s.query.Cursor)
	}
	switch {
	case len(s.query.Sort) > 0:
		s.after = at
	case s.many:
		s.afterPod, s.afterName, _ = strings.Cut(string(at), "/") // a pod's name has no slash
	default:
		s.afterName = string(at)
	}
	return nil
}
