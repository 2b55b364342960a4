package snapshot

import (
	"encoding/binary"
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func goldenRecord() Record {
	return Record{
		Life: 7, Revision: 300, Reserved: 556,
		Changed: time.Date(2024, 2, 29, 12, 30, 45, 123456789, time.UTC),
		Schema:  2, Codec: "msgpack", State: []byte{0x81, 0xa1, 'n', 0x01},
	}
}

const goldenEnvelope = "d701" + // magic, version
	"07" + "ac02" + "ac04" + // life, revision, reserved
	"eae383de0c" + "959aef3a" + // seconds, nanoseconds
	"02" + // schema
	"07" + "6d73677061636b" + // codec
	"04" + "81a16e01" + // state
	"4fcd1c49" // CRC32C

// The stored form is a promise: this test may only ever grow.
func TestEnvelopeIsGolden(t *testing.T) {
	r := goldenRecord()
	require.Equal(t, goldenEnvelope, hex.EncodeToString(r.Append(nil)))
	stored, err := hex.DecodeString(goldenEnvelope)
	require.NoError(t, err)
	back, err := Parse(stored)
	require.NoError(t, err)
	require.Equal(t, r, back)
}

func TestEnvelopeRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Record{
			Life:     rapid.Uint64().Draw(t, "life"),
			Revision: rapid.Uint64().Draw(t, "revision"),
			Reserved: rapid.Uint64().Draw(t, "reserved"),
			Changed: time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "sec"),
				rapid.Int64Range(0, 999_999_999).Draw(t, "nsec")).UTC(),
			Schema: rapid.Uint32().Draw(t, "schema"),
			Codec:  rapid.String().Draw(t, "codec"),
			State:  rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "state"),
		}
		prefix := []byte("before")
		out := r.Append(prefix)
		require.Equal(t, "before", string(out[:6]))
		back, err := Parse(out[6:])
		require.NoError(t, err)
		require.Equal(t, r, back)
	})
}

func TestZeroRecordRoundTrips(t *testing.T) {
	back, err := Parse((&Record{}).Append(nil))
	require.NoError(t, err)
	require.Equal(t, Record{}, back)
	require.True(t, back.Changed.IsZero())
}

func TestEnvelopeKeepsTheInstantOfAnotherZone(t *testing.T) {
	r := goldenRecord()
	utc := r.Append(nil)
	r.Changed = r.Changed.In(time.FixedZone("here", 7200))
	require.Equal(t, utc, r.Append(nil))
}

func TestParseCopiesTheState(t *testing.T) {
	r := goldenRecord()
	stored := r.Append(nil)
	back, err := Parse(stored)
	require.NoError(t, err)
	clear(stored)
	require.Equal(t, r.State, back.State)
}

func TestEveryDamageIsSeen(t *testing.T) {
	r := goldenRecord()
	stored := r.Append(nil)
	for n := range stored {
		_, err := Parse(stored[:n])
		require.ErrorIs(t, err, ErrCorrupt, "cut to %d bytes", n)
	}
	for bit := range len(stored) * 8 {
		bad := append([]byte(nil), stored...)
		bad[bit/8] ^= 1 << (bit % 8)
		_, err := Parse(bad)
		require.ErrorIs(t, err, ErrCorrupt, "bit %d", bit)
		require.NotErrorIs(t, err, ErrNewer, "bit %d", bit)
	}
	_, err := Parse(append(append([]byte(nil), stored...), 0))
	require.ErrorIs(t, err, ErrCorrupt)
	_, err = Parse(nil)
	require.ErrorIs(t, err, ErrCorrupt)
}

// sealed gives a body its right checksum.
func sealed(body ...byte) []byte {
	return binary.BigEndian.AppendUint32(body, checksum(body))
}

func TestIntactEnvelopesThatAppendNeverWrites(t *testing.T) {
	fields := []byte{1, 1, 1, 0, 0, 0, 1, 'j', 1, '1'}
	with := func(version byte, fields ...byte) []byte {
		return sealed(append([]byte{envelopeMagic, version}, fields...)...)
	}
	_, err := Parse(with(1, fields...))
	require.NoError(t, err)

	_, err = Parse(with(2, fields...))
	require.ErrorIs(t, err, ErrNewer)
	require.ErrorContains(t, err, "version 2, this program reads up to 1")
	require.NotErrorIs(t, err, ErrCorrupt)

	for name, bad := range map[string][]byte{
		"version 0":          with(0, fields...),
		"another magic":      sealed(append([]byte{0, 1}, fields...)...),
		"trailing":           with(1, append(fields, 0)...),
		"a field missing":    with(1, fields[:3]...),
		"long state":         with(1, 1, 1, 1, 0, 0, 0, 1, 'j', 200, '1'),
		"huge state":         with(1, 1, 1, 1, 0, 0, 0, 1, 'j', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
		"overlong varint":    with(1, 0x81, 0x00, 1, 1, 0, 0, 0, 0, 0),
		"too big a varint":   with(1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 1, 0, 0, 0, 0, 0),
		"nanoseconds":        with(1, 1, 1, 1, 0, 0x80, 0x94, 0xeb, 0xdc, 0x03, 0, 0, 0),
		"schema of 33 bits":  with(1, 1, 1, 1, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x10, 0, 0),
		"nothing but a head": with(1),
	} {
		_, err := Parse(bad)
		require.ErrorIs(t, err, ErrCorrupt, name)
	}
}

func FuzzParse(f *testing.F) {
	r := goldenRecord()
	f.Add(r.Append(nil), false)
	f.Add((&Record{}).Append(nil), false)
	f.Add([]byte{envelopeMagic, 1, 1, 1, 1, 0, 0, 0, 0, 0}, true)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, data []byte, seal bool) {
		if seal {
			data = sealed(data...) // or the checksum would stop all noise
		}
		r, err := Parse(data)
		if err == nil {
			require.Equal(t, data, r.Append(nil))
		}
	})
}
