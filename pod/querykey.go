package pod

import (
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

// appendKey appends the key of the subject's entity.
func (s *search) appendKey(dst []byte, pod, name string) []byte {
	for i := range s.query.Sort {
		o := &s.query.Sort[i]
		v := s.value(&o.Path)
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

// orderID tells the cursors of one order from those of another.
func (s *search) orderID() []byte {
	h := fnv.New32a()
	for _, o := range s.query.Sort {
		_, _ = h.Write(fmt.Appendf(nil, "%s %t\n", o.Path, o.Descending))
	}
	return h.Sum(nil)
}

// cursor writes the cursor behind an entity. Without an order that is its name.
func (s *search) cursor(f *candidate) string {
	switch {
	case len(s.query.Sort) > 0:
		return base64.RawURLEncoding.EncodeToString(append(s.orderID(), f.key...))
	case s.many:
		return f.view.Pod + "/" + f.view.Name
	}
	return f.view.Name
}

// start reads the query's cursor.
func (s *search) start() error {
	text := s.query.Cursor
	switch {
	case text == "":
	case len(s.query.Sort) > 0:
		b, err := base64.RawURLEncoding.DecodeString(text)
		id := s.orderID()
		if err != nil || len(b) <= len(id) || string(b[:len(id)]) != string(id) {
			return fmt.Errorf("%w: %q", ErrCursor, text)
		}
		s.after = b[len(id):]
	case s.many:
		pod, name, ok := strings.Cut(text, "/")
		if !ok {
			return fmt.Errorf("%w: %q", ErrCursor, text)
		}
		s.afterPod, s.afterName = pod, name
	default:
		s.afterName = text
	}
	return nil
}
