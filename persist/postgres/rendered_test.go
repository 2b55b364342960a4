package postgres

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/snapshot"
)

func rendered(state []byte) ([]byte, bool) {
	return appendRendered(nil, &snapshot.Record{Codec: "msgpack", State: state})
}

// requireSameJSON requires two texts to be one value to jsonb, for which the way
// in which a number is written makes no difference.
func requireSameJSON(t require.TestingT, want, got []byte) {
	var a, b any
	require.NoError(t, json.Unmarshal(want, &a))
	require.NoError(t, json.Unmarshal(got, &b), "%s", got)
	require.Equal(t, a, b)
}

// What is rendered straight from the bytes is what the codec renders.
func TestRenderedIsWhatTheCodecRenders(t *testing.T) {
	t.Parallel()
	codec := snapshot.Msgpack()
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		kinds := []*rapid.Generator[any]{
			rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Int32().AsAny(), rapid.Uint64().AsAny(),
			rapid.Int16Range(-300, 300).AsAny(), rapid.Float32().AsAny(), rapid.Float64().AsAny(),
			rapid.SliceOfN(rapid.Byte(), 0, 300).AsAny(), rapid.String().AsAny(), rapid.StringN(0, 400, -1).AsAny(),
		}
		if depth > 0 {
			inner := rapid.Deferred(func() *rapid.Generator[any] { return value(depth - 1) })
			kinds = append(kinds, rapid.SliceOfN(inner, 0, 20).AsAny(), rapid.MapOfN(rapid.String(), inner, 0, 20).AsAny())
		}
		return rapid.OneOf(kinds...)
	}
	rapid.Check(t, func(t *rapid.T) {
		state, err := codec.Append(nil, map[string]any{"v": value(3).Draw(t, "value")})
		require.NoError(t, err)
		want, err := codec.ToJSON(state)
		require.NoError(t, err)
		got, ok := rendered(state)
		require.Equal(t, fitsJSONB(want) && !strings.Contains(string(want), `\u0000`), ok, "%s", want)
		if ok {
			requireSameJSON(t, want, got)
		}
	})
}

func TestRenderedAtTheEdges(t *testing.T) {
	t.Parallel()
	codec := snapshot.Msgpack()
	for _, v := range []any{
		0, -1, -32, -33, 127, 128, -128, -129, 255, 256, 1<<16 - 1, 1 << 16, -1 << 31, 1 << 32, math.MinInt64, uint64(math.MaxUint64),
		1e21, 1e-7, math.MaxFloat64, math.SmallestNonzeroFloat64, float32(0.1), math.Copysign(0, -1), true, false, nil,
		"", "\"\\\n\x1f", strings.Repeat("x", 31), strings.Repeat("x", 32), strings.Repeat("x", 256), strings.Repeat("x", 1<<16),
		[]byte{}, make([]byte, 256), make([]byte, 1<<16), make([]any, 15), make([]any, 16), make([]any, 1<<16),
	} {
		state, err := codec.Append(nil, map[string]any{"v": v, strings.Repeat("k", 300): 1})
		require.NoError(t, err)
		want, err := codec.ToJSON(state)
		require.NoError(t, err)
		got, ok := rendered(state)
		require.True(t, ok)
		requireSameJSON(t, want, got)
		for _, cut := range []int{0, 1, len(state) / 2, len(state) - 1} {
			_, ok = rendered(state[:cut])
			require.False(t, ok, "%d of %d", cut, len(state))
		}
		_, ok = rendered(append(state, 0xc0))
		require.False(t, ok)
	}
	large := map[string]any{}
	for i := range 1 << 16 {
		large[fmt.Sprint(i)] = nil
	}
	for _, v := range []any{large, map[string]any{"1": 1, "2": 2}} {
		state, err := codec.Append(nil, v)
		require.NoError(t, err)
		want, err := codec.ToJSON(state)
		require.NoError(t, err)
		got, ok := rendered(state)
		require.True(t, ok)
		requireSameJSON(t, want, got)
	}
	// Left to the codec, or without a form.
	at, err := codec.Append(nil, map[string]any{"at": time.Unix(1, 0)})
	require.NoError(t, err)
	deep := strings.Repeat("\x91", 10_000) + "\xc0"
	for _, state := range []string{string(at), "\x81\x01\x01", "\xc1", "\xa1\x00", "\xa1\xff", "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", "\xca\x7f\x80\x00\x00", deep, "\xdd\xff\xff\xff\xff"} {
		_, ok := rendered([]byte(state))
		require.False(t, ok, "%x", state[:min(len(state), 20)])
	}
	_, ok := appendRendered(nil, &snapshot.Record{Codec: "json", State: []byte("\x01")})
	require.False(t, ok)
}

// Whatever the bytes are, what is rendered is JSON that jsonb takes.
func FuzzRendered(f *testing.F) {
	f.Add([]byte("\x82\xa1a\x01\xa1b\x93\xc0\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00\xc4\x01\xff"))
	f.Add([]byte("\xdd\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, state []byte) {
		if out, ok := rendered(state); ok {
			require.True(t, json.Valid(out), "%s", out)
			require.True(t, fitsJSONB(out), "%s", out)
		}
	})
}
