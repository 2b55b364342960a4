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
		rules        uint32
		is           error
	}{
		"nothing":                   {0, 0, 104, spaced, nil},
		"a group that fits":         {length - 104 - frameSize - 1, next, 104, spaced, nil},
		"one that goes beyond":      {length - 104 - frameSize, next, 104, spaced, ErrDamaged},
		"one of another number":     {length, next + 1, 104, spaced, nil},
		"one too large for a group": {largest + 1, next, 104, spaced, nil},
		// The frame of an earlier use that says which segment goes on, met in its middle:
		// its own number stands in the place of a size, and the segment's is that of the group.
		"continued":                  {math.MaxUint32, next, 104, spaced, nil},
		"a head within a sector":     {length, next, 2*sector - frameSize, spaced, ErrDamaged},
		"an older head in two":       {length, next, sector - frameAlign, 0, nil},
		"a head behind the boundary": {length, next, sector, spaced, ErrDamaged},
	} {
		b := make([]byte, length)
		binary.BigEndian.PutUint32(b[c.end:], uint32(c.size))
		binary.BigEndian.PutUint64(b[c.end+8:], c.number)
		g := &segment{name: "segment-1", file: still{Reader: bytes.NewReader(b)}, length: length, growth: length, rules: c.rules, end: c.end}
		require.ErrorIs(t, g.cut(next, largest), c.is, name)
	}
}

// A group does not begin where its head would be in two sectors, of which a crash
// may write one. That of an older program does, and is read.
func TestNoHeadIsInTwoSectors(t *testing.T) {
	for rules, at := range map[uint32]int{0: sector - frameAlign, spaced: sector} {
		g := &segment{name: "segment-1", log: 7, number: 3, first: 1, rules: rules}
		b := append(make([]byte, 0, 4*sector), g.header()...)
		b = append(b, g.seal(make([]byte, sector-frameAlign-headerSize), 1)...)
		b = append(b, make([]byte, at-len(b))...)
		b = append(b, g.seal(make([]byte, frameSize+8), 2)...)
		end := len(b)
		b = append(b, make([]byte, 4*sector-len(b))...)
		other := &segment{file: still{Reader: bytes.NewReader(b)}}
		require.NoError(t, other.readHeader())
		next, damaged, err := other.walk(b, math.MaxUint64, func(uint64, []byte) error { return nil })
		require.NoError(t, err, rules)
		require.False(t, damaged, rules)
		require.EqualValues(t, 3, next, rules)
		require.EqualValues(t, end, other.end, rules)
	}
}
