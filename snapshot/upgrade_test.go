package snapshot

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func rename(from, to string) Upgrade {
	return func(state map[string]any) error {
		state[to] = state[from]
		delete(state, from)
		return nil
	}
}

func TestUpgradesRunInOrder(t *testing.T) {
	u := Upgrades{1: rename("a", "b"), 2: nil, 3: rename("b", "c")}
	for _, c := range []Codec{Msgpack(), JSON()} {
		data, err := c.Append(nil, map[string]any{"a": "x"})
		require.NoError(t, err)
		want, err := c.Append(nil, map[string]any{"c": "x"})
		require.NoError(t, err)
		for _, from := range []uint32{0, 1} {
			for _, to := range []uint32{4, 9, 1<<32 - 1} {
				out, err := u.Apply(c, data, from, to)
				require.NoError(t, err)
				require.Equal(t, want, out, "%s %d to %d", c.Name(), from, to)
			}
		}
		half, err := u.Apply(c, data, 0, 3)
		require.NoError(t, err)
		out, err := u.Apply(c, half, 3, 5)
		require.NoError(t, err)
		require.Equal(t, want, out)
	}
}

func TestVersionsWithoutUpgradesPassDataAsItIs(t *testing.T) {
	data := []byte("not even state")
	for _, u := range []Upgrades{nil, {}, {5: rename("a", "b")}, {0: rename("a", "b")}, {2: nil}} {
		out, err := u.Apply(Msgpack(), data, 2, 4)
		require.NoError(t, err)
		require.Equal(t, data, out)
	}
	out, err := Upgrades{2: rename("a", "b")}.Apply(Msgpack(), data, 2, 2)
	require.NoError(t, err)
	require.Equal(t, data, out)
}

func TestUpgradesFailClearly(t *testing.T) {
	c := Msgpack()
	data, err := c.Append(nil, map[string]any{"a": int64(1)})
	require.NoError(t, err)

	for _, u := range []Upgrades{nil, {0: rename("a", "b")}} {
		_, err = u.Apply(c, data, 3, 2)
		require.ErrorIs(t, err, ErrNewer)
		require.ErrorContains(t, err, "state has schema version 3, this program knows up to 2")
	}

	_, err = Upgrades{0: rename("a", "b"), 2: rename("b", "c")}.Apply(c, data, 0, 3)
	require.ErrorContains(t, err, "upgrade from schema version 1 to 2 is missing: add it, as nil when there is nothing to do")

	cause := errors.New("no")
	_, err = Upgrades{4: func(map[string]any) error { return cause }}.Apply(c, data, 4, 5)
	require.ErrorIs(t, err, cause)
	require.ErrorContains(t, err, "from schema version 4 to 5")

	_, err = Upgrades{0: func(m map[string]any) error { m["f"] = make(chan int); return nil }}.Apply(c, data, 0, 1)
	require.ErrorContains(t, err, "writing state of schema version 1")

	_, err = Upgrades{0: rename("a", "b")}.Apply(c, []byte{0xc1}, 0, 1)
	require.ErrorContains(t, err, "reading state of schema version 0")

	_, err = Upgrades{0: rename("a", "b")}.Apply(c, []byte{0x01}, 0, 1)
	require.ErrorContains(t, err, "stored as int64")

	_, err = Upgrades{0: rename("a", "b")}.Apply(c, []byte{0xc0}, 0, 1)
	require.ErrorContains(t, err, "is nil: upgrades need an object")
}

// An upgrade that touches one field must leave all others as they were.
func TestUpgradesLeaveTheRestAlone(t *testing.T) {
	type point struct{ X, Y int }
	type typed struct {
		Big     uint64
		Neg     int64
		Small   float32
		Float   float64
		Bytes   []byte
		Nil     []byte
		When    time.Time
		ByInt   map[int64]string
		ByFloat map[float32]bool
		ByPoint map[point]string
		ByBytes map[[2]byte]int
		Empty   map[string]int
	}
	in := typed{
		Big: 1<<64 - 1, Neg: -1 << 63, Small: 0.1, Float: 1e300, Bytes: []byte{0xff}, Nil: nil,
		When:    time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		ByInt:   map[int64]string{-5: "a", 1 << 40: "b"},
		ByFloat: map[float32]bool{0.1: true},
		ByPoint: map[point]string{{1, 2}: "p"},
		ByBytes: map[[2]byte]int{{1, 2}: 3},
		Empty:   map[string]int{},
	}
	c := Msgpack()
	data, err := c.Append(nil, in)
	require.NoError(t, err)
	data, err = Upgrades{0: func(m map[string]any) error { m["new"] = []any{json.Number("1"), nil, 1, "x"}; return nil }}.Apply(c, data, 0, 1)
	require.NoError(t, err)
	var out typed
	require.NoError(t, c.Decode(data, &out))
	require.Equal(t, in, out)
}
