package snapshot

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// onPointer has its IsZero on the pointer: -1 is its zero.
type onPointer struct{ N int }

func (o *onPointer) IsZero() bool { return o.N == -1 }

// Both codecs leave out the same fields, as encoding/json does.
func TestOmitEmptyAndOmitZero(t *testing.T) {
	type state struct {
		Text   string         `json:"text,omitempty"`
		List   []int          `json:"list,omitempty"`
		Map    map[string]int `json:"map,omitempty"`
		Place  place          `json:"place,omitempty"` // a struct is never empty
		When   time.Time      `json:"when,omitzero"`
		Later  *time.Time     `json:"later,omitzero"`
		Own    onPointer      `json:"own,omitzero"`
		Point  place          `json:"point,omitzero"`
		Number int            `json:"number,omitempty"`
	}
	zero := time.Time{}
	for want, in := range map[string]state{
		`{"own":{"N":0},"place":{"x":0,"y":0}}`: {List: []int{}, Map: map[string]int{}, Later: &zero},
		`{"place":{"x":0,"y":0}}`:               {When: zero.In(time.FixedZone("", 60)), Own: onPointer{-1}},
		`{"list":[0],"map":{"":0},"number":1,"own":{"N":0},"place":{"x":0,"y":0},"point":{"x":1,"y":0},"text":"a","when":"1970-01-01T00:00:00Z"}`: {
			Text: "a", List: []int{0}, Map: map[string]int{"": 0}, Point: place{X: 1}, Number: 1, When: time.Unix(0, 0).UTC(),
		},
	} {
		for _, c := range []Codec{Msgpack(), JSON()} {
			for _, v := range []any{in, &in} {
				data, err := c.Append(nil, v)
				require.NoError(t, err)
				out, err := c.ToJSON(data)
				require.NoError(t, err)
				require.Equal(t, want, string(out), c.Name())
			}
		}
	}
}

// What one key or element leaves out must not come from the one before it.
func TestOmittedFieldsOfKeysAndElementsAreZero(t *testing.T) {
	type key struct {
		A int `json:"a,omitempty"`
		B int `json:"b,omitempty"`
	}
	in := map[key]key{{1, 2}: {3, 4}, {0, 5}: {0, 6}, {7, 0}: {8, 0}, {}: {}}
	c := Msgpack()
	data, err := c.Append(nil, in)
	require.NoError(t, err)
	var out map[key]key
	require.NoError(t, c.Decode(data, &out))
	require.Equal(t, in, out)
}
