package snapshot

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vmihailenco/msgpack/v5"
	"pgregory.net/rapid"
)

// byLibrary is what the library writes.
func byLibrary(t require.TestingT, write func(*msgpack.Encoder) error) []byte {
	var out bytes.Buffer
	require.NoError(t, write(msgpack.NewEncoder(&out)))
	return out.Bytes()
}

// TestFormsAreTheLibrarys: the forms are what the library writes, which stands
// in stores and which it reads back.
func TestFormsAreTheLibrarys(t *testing.T) {
	edges := []int64{0, 1, 31, 32, 127, 128, 255, 256, 1<<15 - 1, 1 << 15, 1<<16 - 1, 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<34 - 1, 1 << 34, math.MaxInt64}
	check := func(t require.TestingT, n int64) {
		for _, n := range []int64{n, -n, ^n} {
			require.Equal(t, byLibrary(t, func(e *msgpack.Encoder) error { return e.EncodeInt(n) }), appendInt(nil, n), n)
			require.Equal(t, byLibrary(t, func(e *msgpack.Encoder) error { return e.EncodeUint(uint64(n)) }), appendUint(nil, uint64(n)), n)
			f := math.Float64frombits(uint64(n))
			require.Equal(t, byLibrary(t, func(e *msgpack.Encoder) error { return e.EncodeFloat64(f) }), appendFloat64(nil, f), f)
			require.Equal(t, byLibrary(t, func(e *msgpack.Encoder) error { return e.EncodeFloat32(float32(f)) }), appendFloat32(nil, float32(f)), f)
			at := time.Unix(n, n&0x3fffffff%1e9).UTC()
			require.Equal(t, byLibrary(t, func(e *msgpack.Encoder) error { return e.EncodeTime(at) }), appendTime(nil, at), at)
			require.Equal(t, byLibrary(t, func(e *msgpack.Encoder) error { return e.EncodeTime(time.Unix(n, 0)) }), appendTime(nil, time.Unix(n, 0)), n)
		}
	}
	for _, n := range edges {
		check(t, n)
		if n > 1<<16+1 {
			continue
		}
		s := strings.Repeat("x", int(n))
		require.Equal(t, byLibrary(t, func(e *msgpack.Encoder) error { return e.EncodeString(s) }), appendText(nil, s), n)
		require.Equal(t, byLibrary(t, func(e *msgpack.Encoder) error { return e.EncodeBytes([]byte(s)) }), appendBytes(nil, []byte(s)), n)
		require.Equal(t, byLibrary(t, func(e *msgpack.Encoder) error { return e.EncodeArrayLen(int(n)) }), appendArrayLen(nil, int(n)), n)
		require.Equal(t, byLibrary(t, func(e *msgpack.Encoder) error { return e.EncodeMapLen(int(n)) }), appendMapLen(nil, int(n)), n)
	}
	for _, v := range []bool{true, false} {
		require.Equal(t, byLibrary(t, func(e *msgpack.Encoder) error { return e.EncodeBool(v) }), appendBool(nil, v))
	}
	require.Equal(t, byLibrary(t, (*msgpack.Encoder).EncodeNil), appendNil(nil))
	require.Equal(t, byLibrary(t, func(e *msgpack.Encoder) error { return e.EncodeBytes(nil) }), appendBytes(nil, nil))
	require.Equal(t, byLibrary(t, func(e *msgpack.Encoder) error { return e.EncodeBytes([]byte{}) }), appendBytes(nil, []byte{}))
	rapid.Check(t, func(rt *rapid.T) { check(rt, rapid.Int64().Draw(rt, "n")) })
}
