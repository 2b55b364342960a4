package entity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twinsrv/twinsrv/internal/mutant"
)

// ETag names one revision of one life.
type ETag struct {
	Life, Revision uint64
}

// String returns the tag as <life>-<revision>, without quotes.
func (t ETag) String() string {
	return strconv.FormatUint(t.Life, 10) + "-" + strconv.FormatUint(t.Revision, 10)
}

// ParseETag reads what String writes.
func ParseETag(s string) (ETag, error) {
	life, rev, ok := strings.Cut(s, "-")
	if ok {
		l, err1 := strconv.ParseUint(life, 10, 64)
		r, err2 := strconv.ParseUint(rev, 10, 64)
		if tag := (ETag{l, r}); err1 == nil && err2 == nil && tag.String() == s {
			return tag, nil
		}
	}
	return ETag{}, fmt.Errorf("%q is not an entity tag of the form <life>-<revision>", s)
}

// Condition restricts the revisions at which a message is handled. The zero
// value holds always.
type Condition struct {
	// Match lists the revisions of which the entity must have one; nil allows
	// all, an empty list none.
	Match []ETag
	// NoneMatch lists revisions of which the entity must have none.
	NoneMatch []ETag
	// Exists needs the entity to exist, Absent needs it not to.
	Exists, Absent bool
}

// Check returns an error wrapping ErrStale when the condition does not hold at
// a revision; revision 0 stands for an absent entity. A life of 0 is one that
// the store has not named yet and that matches no tag.
func (c *Condition) Check(life, revision uint64) error {
	exists := revision > 0
	tag := ETag{life, revision}
	if mutant.On(mutant.ConditionIgnoresLife) && len(c.Match) > 0 {
		tag.Life = c.Match[0].Life
	}
	switch {
	case c.Exists && !exists:
		return fmt.Errorf("%w: the entity does not exist", ErrStale)
	case c.Absent && exists:
		return fmt.Errorf("%w: the entity exists", ErrStale)
	case c.Match != nil && (!exists || !slices.Contains(c.Match, tag)):
		return fmt.Errorf("%w: the entity is not at a revision that the condition names", ErrStale)
	case exists && slices.Contains(c.NoneMatch, tag):
		return fmt.Errorf("%w: the entity is at a revision that the condition excludes", ErrStale)
	}
	return nil
}
