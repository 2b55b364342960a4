package httpapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/twinsrv/twinsrv/entity"
)

// conditionOf reads If-Match and If-None-Match. A weak tag never satisfies
// If-Match, and counts for If-None-Match. Tags that no entity can have are
// legal and match nothing.
func conditionOf(h http.Header) (entity.Condition, error) {
	var c entity.Condition
	if values := h.Values("If-Match"); len(values) > 0 {
		tags, star, err := parseTags("If-Match", values)
		if err != nil {
			return c, err
		}
		if c.Exists = star; !star {
			c.Match = []entity.ETag{}
			for _, t := range tags {
				if !t.weak {
					c.Match = append(c.Match, t.ETag)
				}
			}
		}
	}
	if values := h.Values("If-None-Match"); len(values) > 0 {
		tags, star, err := parseTags("If-None-Match", values)
		if err != nil {
			return c, err
		}
		c.Absent = star
		for _, t := range tags {
			c.NoneMatch = append(c.NoneMatch, t.ETag)
		}
	}
	return c, nil
}

type tag struct {
	entity.ETag
	weak bool
}

// parseTags reads the values of one header: * or a list of entity tags
// (RFC 9110, section 8.8.3).
func parseTags(header string, values []string) (tags []tag, star bool, err error) {
	bad := refuse(CodeBadCondition, header+` is neither * nor a list of entity tags, with their quotes, such as "7-3"`)
	text := strings.Join(values, ",")
	if strings.Trim(text, " \t") == "*" {
		return nil, true, nil
	}
	found := false
	for rest := text; ; {
		rest = strings.TrimLeft(rest, " \t,")
		if rest == "" {
			break
		}
		weak := strings.HasPrefix(rest, "W/")
		rest = strings.TrimPrefix(rest, "W/")
		if rest == "" || rest[0] != '"' {
			return nil, false, bad
		}
		opaque, after, closed := strings.Cut(rest[1:], `"`)
		after = strings.TrimLeft(after, " \t")
		if !closed || strings.ContainsAny(opaque, " \t") || after != "" && after[0] != ',' {
			return nil, false, bad
		}
		found, rest = true, after
		if t, err := entity.ParseETag(opaque); err == nil {
			tags = append(tags, tag{t, weak})
		}
	}
	if !found {
		return nil, false, bad
	}
	return tags, false, nil
}

// unmet tells apart, for the answer, what a condition that does not hold asked
// for: a revision that the entity is at, or something else.
func unmet(c entity.Condition, err error) error {
	if c.Match != nil && errors.Is(err, entity.ErrStale) && asksRevision(err) {
		return &failure{code: CodeStaleRevision, detail: err.Error()}
	}
	return err
}

// asksRevision reports whether it is the list of revisions that did not hold: of
// the parts of a condition it alone fails with a text of entity.ErrStale.
func asksRevision(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if strings.HasPrefix(err.Error(), entity.ErrStale.Error()) {
			return true
		}
		if errors.Unwrap(err) == entity.ErrStale { //nolint:errorlint // each of the chain is looked at
			return false
		}
	}
	return false
}

// quoted is a tag as it stands in the ETag header.
func quoted(t entity.ETag) string { return `"` + t.String() + `"` }

// condition reads all that the request is conditional on: its headers, and the
// expression of the query.
func (c *call) condition() (entity.Condition, error) {
	cond, err := conditionOf(c.r.Header)
	if err != nil {
		return cond, err
	}
	q, err := c.query()
	if err != nil || !q.Has("condition") {
		return cond, err
	}
	cond.Where, err = predicateOf(c.pod, q.Get("condition"))
	return cond, err
}
