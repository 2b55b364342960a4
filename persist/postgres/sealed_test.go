package postgres

import (
	"bytes"
	"hash/crc32"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

func sealedChange() persist.Change {
	return persist.Change{Position: 9, Key: rooms("a"), Life: 7, Revision: 3, Time: time.Unix(-5, 999_999_999).UTC(),
		Type: "measured\x00", Schema: 1<<32 - 1, Codec: "json", Data: []byte(`{"celsius":21}`), Event: true}
}

// A change is what was sealed, or damage: with any bit flipped, cut anywhere, or
// in any other's columns.
func TestEveryBitOfAChangeIsChecked(t *testing.T) {
	want := sealedChange()
	sealed := sealChange(nil, &want)
	columns := func() persist.Change {
		return persist.Change{Position: want.Position, Key: want.Key, Life: want.Life, Revision: want.Revision, Event: want.Event}
	}
	got := columns()
	require.NoError(t, openChange(&got, bytes.Clone(sealed)))
	require.Equal(t, want, got)
	for i := range sealed {
		for bit := range 8 {
			b := bytes.Clone(sealed)
			b[i] ^= 1 << bit
			c := columns()
			require.ErrorIs(t, openChange(&c, b), snapshot.ErrCorrupt)
		}
		c := columns()
		require.ErrorIs(t, openChange(&c, sealed[:i]), snapshot.ErrCorrupt)
	}
	for _, other := range []func(*persist.Change){
		func(c *persist.Change) { c.Position++ }, func(c *persist.Change) { c.Life++ }, func(c *persist.Change) { c.Revision++ },
		func(c *persist.Change) { c.Event = false }, func(c *persist.Change) { c.Key.Name = "b" }, func(c *persist.Change) { c.Key.Pod = "room" },
	} {
		c := columns()
		other(&c)
		require.ErrorIs(t, openChange(&c, sealed), snapshot.ErrCorrupt)
	}
}

// What has the right checksum and is no change all the same is damage, and no
// panic.
func FuzzOpenChange(f *testing.F) {
	c := sealedChange()
	sealed := sealChange(nil, &c)
	f.Add(sealed[:len(sealed)-4])
	f.Add([]byte{changeVersion, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, body []byte) {
		c := persist.Change{Position: 1, Key: rooms("a")}
		sum := changeSum(body, &c)
		err := openChange(&c, append(bytes.Clone(body), byte(sum>>24), byte(sum>>16), byte(sum>>8), byte(sum)))
		if err != nil {
			require.ErrorIs(t, err, snapshot.ErrCorrupt)
		}
	})
}

func TestEveryBitOfARowIsChecked(t *testing.T) {
	r := persist.Row{Kind: "outbox", Key: rooms("a"), ID: "1", Value: []byte("value")}
	sum := rowSum(&r)
	require.GreaterOrEqual(t, sum, int64(0))
	require.LessOrEqual(t, sum, int64(^crc32.Checksum(nil, castagnoli())))
	for i := range r.Value {
		c := r
		c.Value = bytes.Clone(r.Value)
		c.Value[i] ^= 1
		require.NotEqual(t, sum, rowSum(&c))
	}
	for _, c := range []persist.Row{
		{Kind: "outbo", Key: persist.Key{Pod: "xrooms", Name: "a"}, ID: "1", Value: r.Value},
		{Kind: "outbox", Key: rooms("a1"), ID: "", Value: r.Value},
		{Kind: "outbox", Key: rooms("a"), ID: "1v", Value: []byte("alue")},
	} {
		require.NotEqual(t, sum, rowSum(&c), "parts are kept apart")
	}
}
