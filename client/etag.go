package client

import (
	"fmt"
	"strconv"
	"strings"
)

// ETag names one revision of one life of an entity. The zero value names none.
type ETag struct {
	Life, Revision uint64
}

// String returns the tag as <life>-<revision>, without quotes.
func (t ETag) String() string {
	return strconv.FormatUint(t.Life, 10) + "-" + strconv.FormatUint(t.Revision, 10)
}

// ParseETag reads a tag, with quotes or without.
func ParseETag(s string) (ETag, error) {
	text := s
	if len(text) > 1 && text[0] == '"' && text[len(text)-1] == '"' {
		text = text[1 : len(text)-1]
	}
	life, revision, ok := strings.Cut(text, "-")
	if ok {
		l, err1 := strconv.ParseUint(life, 10, 64)
		r, err2 := strconv.ParseUint(revision, 10, 64)
		if err1 == nil && err2 == nil {
			return ETag{l, r}, nil
		}
	}
	return ETag{}, fmt.Errorf("%q is not an entity tag of the form <life>-<revision>", s)
}
