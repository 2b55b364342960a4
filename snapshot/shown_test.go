package snapshot_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/snapshot"
)

// sealed writes its own JSON.
type sealed struct{ n int }

func (s sealed) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]int{"sealed": s.n}) }
func (s *sealed) UnmarshalJSON(data []byte) error {
	var m map[string]int
	err := json.Unmarshal(data, &m)
	s.n = m["sealed"]
	return err
}

// colour writes its own text.
type colour struct{ name string }

func (c colour) MarshalText() ([]byte, error)     { return []byte(c.name), nil }
func (c *colour) UnmarshalText(data []byte) error { c.name = string(data); return nil }

type crate struct {
	One    sealed            `json:"one"`
	None   *sealed           `json:"none"`
	Some   *sealed           `json:"some"`
	List   []sealed          `json:"list"`
	ByName map[string]sealed `json:"byName"`
	Text   string            `json:"text"`
	Colour colour            `json:"colour"`
	At     time.Time         `json:"at"`
	Inside *crate            `json:"inside,omitempty"`
	lid
}

type lid struct {
	Top sealed `json:"top"`
}

// What marshals itself to JSON is shown as that, wherever it stands; a string that
// looks like JSON stays one.
func TestShower(t *testing.T) {
	c := snapshot.Msgpack()
	v := crate{
		One: sealed{1}, Some: &sealed{2}, List: []sealed{{3}, {4}}, ByName: map[string]sealed{"x": {5}}, Text: `{"sealed":0}`,
		Colour: colour{`{"red":1}`}, At: time.Unix(1, 0).UTC(), Inside: &crate{One: sealed{6}}, lid: lid{sealed{7}},
	}
	require.NoError(t, c.Check(reflect.TypeOf(v)))
	data, err := c.Append(nil, v)
	require.NoError(t, err)
	shown, err := snapshot.ShowerOf(c, reflect.TypeOf(v)).JSON(data)
	require.NoError(t, err)
	want, err := json.Marshal(v)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(shown))

	data, err = c.Append(nil, sealed{8})
	require.NoError(t, err)
	shown, err = snapshot.ShowerOf(c, reflect.TypeFor[sealed]()).JSON(data)
	require.NoError(t, err)
	require.Equal(t, `{"sealed":8}`, string(shown))

	text, err := snapshot.ShowerOf(snapshot.JSON(), reflect.TypeFor[map[string]any]()).JSON([]byte(`{"a":"{}"}`))
	require.NoError(t, err)
	require.Equal(t, `{"a":"{}"}`, string(text))
}
