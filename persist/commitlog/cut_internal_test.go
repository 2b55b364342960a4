package commitlog

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// still is a file that is only read.
type still struct {
	File
	*bytes.Reader
}

func (s still) ReadAt(b []byte, at int64) (int, error) { return s.Reader.ReadAt(b, at) }
func (s still) Size() (int64, error)                   { return s.Reader.Size(), nil }

// Behind the last group stands the head of the next, if that was begun, or
// anything of an earlier use of the file: that tells nothing of a file's length.
func TestWhatStandsBehindTheLastGroup(t *testing.T) {
	const length, next, largest = 1 << 10, 6, 1 << 20
	for name, c := range map[string]struct {
		size, number uint64
		end          int64
		is           error
	}{
		"nothing":                   {0, 0, 104, nil},
		"a group that fits":         {length - 104 - frameSize - 1, next, 104, nil},
		"one that goes beyond":      {length - 104 - frameSize, next, 104, ErrDamaged},
		"one of another number":     {length, next + 1, 104, nil},
		"one too large for a group": {largest + 1, next, 104, nil},
		// The frame of an earlier use that says which segment goes on, met in its middle:
		// its own number stands in the place of a size, and the segment's is that of the group.
		"continued":                  {math.MaxUint32, next, 104, nil},
		"a head within a sector":     {length, next, 2*sector - frameSize, ErrDamaged},
		"a head that is in two":      {length, next, sector - frameAlign, nil},
		"a head behind the boundary": {length, next, sector, ErrDamaged},
	} {
		b := make([]byte, length)
		binary.BigEndian.PutUint32(b[c.end:], uint32(c.size))
		binary.BigEndian.PutUint64(b[c.end+8:], c.number)
		g := &segment{name: "segment-1", file: still{Reader: bytes.NewReader(b)}, length: length, growth: length, end: c.end}
		require.ErrorIs(t, g.cut(next, largest), c.is, name)
	}
}
