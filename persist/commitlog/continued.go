package commitlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/twinsrv/twinsrv/persist"
)

// continued is the number of a frame that is no group: it stands behind the last
// group of a segment and has the number of the one that goes on behind it. It is
// written once that has a durable group, so that a newest segment that was taken
// away, or emptied, is missed. A crash before that leaves nothing to miss, for
// nothing in the new segment was acknowledged.
const continued = ^uint64(0)

// use is a segment in one of its uses, which ends when its file is used again.
type use struct {
	g      *segment
	number uint64
}

// goneOn notes where the last durable group stands, and in the segment before
// that this one goes on. The caller has the turn.
func (s *Store) goneOn(g *segment) {
	before := s.last
	if before.g == g && before.number == g.number {
		return
	}
	s.last = use{g, g.number}
	if before.g == nil || before.g.number != before.number {
		return
	}
	if err := before.g.noteContinued(g.number); err != nil {
		s.cfg.Logger.Warn("a segment of the commit log could not be told of the next one; should that be lost, it would not be missed",
			"log", s.dir, "segment", before.g.name, "next", g.name, "error", err)
	}
}

func (g *segment) noteContinued(number uint64) error {
	frame := make([]byte, frameSize, frameSize+8)
	frame = g.seal(binary.BigEndian.AppendUint64(frame, number), continued)
	if _, err := g.file.WriteAt(frame, g.end); err != nil {
		return err
	}
	return g.file.Sync()
}

// complete makes sure that no segment behind the newest has gone, and that the
// newest has not been emptied. ends is the last group that there is.
func complete(uses []*segment, ends uint64, mark persist.Mark) error {
	if mark.Detached {
		return nil // everything is in the store behind
	}
	newest := uses[len(uses)-1]
	number, ok, err := newest.continuedBy()
	if err != nil {
		return err
	}
	if ok {
		return fmt.Errorf("%w: what was acknowledged last stands in segment %d of it, which went on behind %s and is missing or empty; bring its file back, or restore a backup", ErrDamaged, number, newest.name)
	}
	if len(uses) == 1 || ends >= newest.first {
		return nil
	}
	before := uses[len(uses)-2]
	b, err := before.read()
	if err != nil {
		return err
	}
	if _, _, err := before.walk(b, newest.first, func(uint64, []byte) error { return nil }); err != nil {
		return err
	}
	if number, ok, err = before.continuedBy(); ok && number == newest.number {
		return fmt.Errorf("%w: %s has no group any more, and had some that were acknowledged; bring the file back as it was, or restore a backup", ErrDamaged, newest.name)
	}
	return err
}

// continuedBy returns the number of the segment that goes on behind g, which was
// walked to its end.
func (g *segment) continuedBy() (number uint64, ok bool, err error) {
	var b [frameSize + 8]byte
	n, err := g.file.ReadAt(b[:], g.end)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, false, fmt.Errorf("read %s: %w", g.name, err)
	}
	group, effects, ok := g.frame(b[:n], 0)
	if !ok || group != continued || len(effects) != 8 {
		return 0, false, nil
	}
	return binary.BigEndian.Uint64(effects), true, nil
}
