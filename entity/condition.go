package entity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
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

// Predicate is a question about an entity's state, such as a filter's. It is
// asked on the entity's turn and must not block; it may be asked for several
// entities at once.
type Predicate interface {
	// Holds answers for the state that a message would be handled on: encoded
	// by the codec of that name, at a life that is 0 as long as the commit that
	// begins it is under way. It must neither change nor keep the bytes. An
	// error refuses the message.
	Holds(life, revision uint64, changed time.Time, name string, codec string, state []byte) (bool, error)
	// String returns the question's text, for people.
	String() string
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
	// Where, if not nil, must hold for the entity's state, which an entity that
	// does not exist has none of. It is judged last.
	Where Predicate
}

// unmet says why a condition that asks for no revision does not hold. It is an
// ErrStale in all but its text: nobody who got it has an old revision.
type unmet string

func (e unmet) Error() string { return "condition not met: " + string(e) }
func (e unmet) Unwrap() error { return ErrStale }

// Check returns an error wrapping ErrStale when the condition does not hold at
// a revision; revision 0 stands for an absent entity. A life of 0 is one that
// the store has not named yet and that matches no tag. Where is not judged.
func (c *Condition) Check(life, revision uint64) error {
	exists := revision > 0
	tag := ETag{life, revision}
	if mutant.On(mutant.ConditionIgnoresLife) && len(c.Match) > 0 {
		tag.Life = c.Match[0].Life
	}
	switch {
	case c.Exists && !exists:
		return unmet("the entity does not exist")
	case c.Absent && exists:
		return unmet("the entity exists")
	case c.Match != nil && (!exists || !slices.Contains(c.Match, tag)):
		return fmt.Errorf("%w: the entity is not at a revision that the condition names", ErrStale)
	case exists && slices.Contains(c.NoneMatch, tag):
		return unmet("the entity is at a revision that the condition excludes")
	}
	return nil
}

// meets says why a condition does not hold for the entity's head, or nil.
func (a *activation) meets(c *Condition) error { return a.spec.meets(a.key, &a.head, c) }

// meets says why a condition does not hold for an entity at a head, or nil.
func (s *Spec) meets(key persist.Key, h *head, c *Condition) error {
	err := c.Check(h.life, h.revision)
	if err == nil && c.Where != nil {
		err = s.where(key, h, c.Where)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// where asks a predicate about a head. The code of one that panics harms nobody
// else.
func (s *Spec) where(key persist.Key, h *head, p Predicate) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the condition failed: %w", panicked(r))
		}
	}()
	if h.revision == 0 {
		return fmt.Errorf("%w: the entity does not exist, and %s is asked of its state", ErrCondition, p)
	}
	holds, err := p.Holds(h.life, h.revision, h.changed, key.Name, s.codec.Name(), h.enc)
	switch {
	case err != nil:
		return fmt.Errorf("the condition %s: %w", p, err)
	case !holds:
		return fmt.Errorf("%w: %s does not hold", ErrCondition, p)
	}
	return nil
}
