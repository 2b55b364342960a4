package commitlog

import (
	"context"
	"encoding/binary"
)

// FoldFrozen folds a batch of what is frozen, as the background does.
func (s *Store) FoldFrozen(ctx context.Context) error { return s.foldStep(ctx) }

// Reused returns the bytes of a segment whose file was begun again, for the same
// first group, when nothing else of that has reached the disk.
func Reused(segment []byte) []byte {
	g := segmentOf(segment)
	g.number++
	return append(g.header(), segment[headerSize:]...)
}

// Older returns the bytes of a segment as programs wrote it that did not note
// how long it was made.
func Older(segment []byte) []byte {
	return append(segmentOf(segment).header(), segment[headerSize:]...)
}

// Group is where a group stands in a segment: its bytes from, up to end; padding
// fills up what is left before next.
type Group struct{ From, End, Next int }

// Groups finds the groups of a segment.
func Groups(b []byte) (all []Group) {
	g := segmentOf(b)
	for at := headerSize; ; {
		group, effects, ok := g.frame(b, at)
		if !ok || group == continued {
			return all
		}
		end := at + frameSize + len(effects)
		at = g.place(end)
		all = append(all, Group{end - frameSize - len(effects), end, at})
	}
}

func segmentOf(b []byte) *segment {
	return &segment{rules: binary.BigEndian.Uint32(b[12:]), log: binary.BigEndian.Uint64(b[16:]), number: binary.BigEndian.Uint64(b[24:]),
		first: binary.BigEndian.Uint64(b[32:]), position: binary.BigEndian.Uint64(b[40:])}
}
