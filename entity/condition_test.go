package entity

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConditionCheck(t *testing.T) {
	at := func(tags ...ETag) []ETag { return append([]ETag{}, tags...) }
	for name, c := range map[string]struct {
		cond           Condition
		life, revision uint64
		holds          bool
	}{
		"none, absent":                {Condition{}, 0, 0, true},
		"none, there":                 {Condition{}, 7, 3, true},
		"match":                       {Condition{Match: at(ETag{7, 3})}, 7, 3, true},
		"match one of two":            {Condition{Match: at(ETag{7, 2}, ETag{7, 3})}, 7, 3, true},
		"match another revision":      {Condition{Match: at(ETag{7, 2})}, 7, 3, false},
		"match of an earlier life":    {Condition{Match: at(ETag{6, 3})}, 7, 3, false},
		"match, absent":               {Condition{Match: at(ETag{7, 3})}, 0, 0, false},
		"match nothing":               {Condition{Match: at()}, 7, 3, false},
		"match revision 0 of nobody":  {Condition{Match: at(ETag{0, 0})}, 0, 0, false},
		"exists":                      {Condition{Exists: true}, 7, 3, true},
		"exists, absent":              {Condition{Exists: true}, 0, 0, false},
		"absent":                      {Condition{Absent: true}, 0, 0, true},
		"absent, there":               {Condition{Absent: true}, 7, 3, false},
		"none match":                  {Condition{NoneMatch: at(ETag{7, 2})}, 7, 3, true},
		"none match, but it is there": {Condition{NoneMatch: at(ETag{7, 3})}, 7, 3, false},
		"none match, absent":          {Condition{NoneMatch: at(ETag{7, 3})}, 0, 0, true},
	} {
		err := c.cond.Check(c.life, c.revision)
		if c.holds {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, ErrStale, name)
		}
	}
}

// TestConditionSays: who named no revision that must be there is told of none
// that is stale.
func TestConditionSays(t *testing.T) {
	for says, c := range map[string]struct {
		cond     Condition
		revision uint64
	}{
		"condition not met: the entity exists":                                       {Condition{Absent: true}, 3},
		"condition not met: the entity does not exist":                               {Condition{Exists: true}, 0},
		"condition not met: the entity is at a revision that the condition excludes": {Condition{NoneMatch: []ETag{{7, 3}}}, 3},
		"stale revision: the entity is not at a revision that the condition names":   {Condition{Match: []ETag{{7, 2}}}, 3},
	} {
		err := c.cond.Check(7, c.revision)
		require.EqualError(t, err, says)
		require.ErrorIs(t, err, ErrStale)
		require.NotErrorIs(t, err, ErrCondition)
	}
}

func TestETagText(t *testing.T) {
	tag, err := ParseETag(ETag{18446744073709551615, 3}.String())
	require.NoError(t, err)
	require.Equal(t, ETag{18446744073709551615, 3}, tag)
	for _, bad := range []string{"", "-", "1", "1-", "-1", "01-1", "1-01", "+1-1", "1-1 ", "1-18446744073709551616", "1-2-3"} {
		_, err := ParseETag(bad)
		require.Error(t, err, "%q", bad)
	}
}
