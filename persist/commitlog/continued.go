package commitlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/twinsrv/twinsrv/persist"
)

// What was acknowledged last stands at the end of the newest segment, where a
// crash leaves a group that is not whole, or none. Three things tell damage to it
// from that, and none of them is there before what it tells of is durable:
//
//   - The segment before says that this one has a group (continued). Where that
//     one's file is used again, or none was before, the store behind is told.
//   - The store behind says with each fold how far the log reached (Mark.Reached).
//   - The file is as long as it was made before that was written (cut).
//
// What is left is damage that keeps the file's length, is behind what the store
// knows of, and has nothing whole behind it: it looks like a torn write.

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

// goneOn notes where the last durable group stands, and in the segment before,
// or in the store behind, that this one goes on. What fails is tried again with the
// next group. The caller has the turn.
func (s *Store) goneOn(ctx context.Context, g *segment) {
	before, now := s.last, use{g, g.number}
	if before == now {
		return
	}
	told := true
	var err error
	if before.g == nil || before.g.number != before.number {
		told, err = s.tellReached(ctx)
	} else {
		err = before.g.noteContinued(g.number)
	}
	switch {
	case err != nil:
		s.untold(now, err)
	case told:
		s.last = now
	}
}

// untold says once for each use that it might not be missed.
func (s *Store) untold(u use, err error) {
	if s.warned == u {
		return
	}
	s.warned = u
	s.cfg.Logger.Warn("it could not be noted that a segment of the commit log has been begun; should that be lost before the next fold, it might not be missed",
		"log", s.dir, "segment", u.g.name, "error", err)
}

func (g *segment) noteContinued(number uint64) error {
	frame := make([]byte, frameSize, frameSize+8)
	frame = g.seal(binary.BigEndian.AppendUint64(frame, number), continued)
	if _, err := g.file.WriteAt(frame, g.end); err != nil {
		return err
	}
	return g.file.Sync()
}

// tellReached notes in the store behind how far the log reaches. While somebody
// else has the folding, or it would have to wait for a backup, it does nothing and
// says so. The caller has the turn.
func (s *Store) tellReached(ctx context.Context) (told bool, err error) {
	select {
	case s.folds <- struct{}{}:
	default:
		return false, nil
	}
	defer release(s.folds)
	mark, err := s.behind.Mark(ctx)
	if err != nil {
		return false, err
	}
	mark.Reached = s.group
	if err := s.behind.Fold(ctx, persist.Fold{Mark: mark}); !isBusy(err) {
		return true, err
	}
	return false, nil
}

// complete makes sure that no segment behind the newest has gone, and that the
// newest has not been emptied or cut, as far as the file, the store behind and the
// segments before tell. ends is the last group that there is; no group is larger than
// largest. told says that, should the newest be lost from now on, it would be missed.
func complete(uses []*segment, ends uint64, mark persist.Mark, largest int64) (told bool, err error) {
	if mark.Detached {
		return true, nil // everything is in the store behind
	}
	newest := uses[len(uses)-1]
	if err := newest.cut(ends+1, largest); err != nil {
		return false, err
	}
	reached := max(mark.Through, mark.Reached)
	if ends < reached {
		return false, fmt.Errorf("%w: it ends with group %d, and the store knows that it had %d: the log is an older copy, or its end is damaged; bring back the newer one, or restore a backup", ErrDamaged, ends, reached)
	}
	goesOn, err := continuedIn(uses)
	switch {
	case err != nil:
		return false, err
	case goesOn > newest.number:
		return false, fmt.Errorf("%w: what was acknowledged last stands in segment %d of it, which is missing or empty; bring its file back, or restore a backup", ErrDamaged, goesOn)
	case goesOn == newest.number && ends < newest.first:
		return false, fmt.Errorf("%w: %s has no group any more, and had some that were acknowledged; bring the file back as it was, or restore a backup", ErrDamaged, newest.name)
	}
	return goesOn == newest.number || ends < newest.first || reached >= newest.first, nil
}

// continuedIn returns the number of the newest segment that another says to go on
// behind it; 0 when none does. Any of them may: what could not be noted in one is
// noted in the one before it. The newest was walked to its end.
func continuedIn(uses []*segment) (number uint64, err error) {
	last := len(uses) - 1
	for i := last; i >= 0; i-- {
		g := uses[i]
		if i < last {
			b, err := g.read()
			if err != nil {
				return 0, err
			}
			if _, _, err := g.walk(b, uses[i+1].first, func(uint64, []byte) error { return nil }); err != nil {
				return 0, err
			}
		}
		n, err := g.continuedBy()
		if err != nil {
			return 0, err
		}
		number = max(number, n)
	}
	return number, nil
}

// continuedBy returns the number of the segment that goes on behind g, which was
// walked to its end; 0 when none is known to.
func (g *segment) continuedBy() (number uint64, err error) {
	var b [frameSize + 8]byte
	n, err := g.file.ReadAt(b[:], g.end)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read %s: %w", g.name, err)
	}
	if group, effects, ok := g.frame(b[:n], 0); ok && group == continued && len(effects) == 8 {
		return binary.BigEndian.Uint64(effects), nil
	}
	return 0, nil
}

// cut makes sure that the file is as long as it was made, durably, before what
// stands in it was written: no crash makes it shorter. g was walked to its end,
// where the group next may have been begun. What stands there may as well be of an
// earlier use, and have next in the place of its number by chance; then what has the
// place of its size is hardly that of a group. Of a head in two sectors, which older
// programs wrote, one may be written and the other not.
func (g *segment) cut(next uint64, largest int64) error {
	if g.length == 0 {
		return nil // its header does not say
	}
	var head [frameSize]byte
	if _, err := g.file.ReadAt(head[:], g.end); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", g.name, err)
	}
	written := g.end
	if size := int64(binary.BigEndian.Uint32(head[:])); binary.BigEndian.Uint64(head[8:]) == next && size <= largest && (g.rules&spaced != 0 || g.end%sector != sector-frameAlign) {
		written += frameSize + size
	}
	had := g.length
	if more := written + 1 - had; more > 0 { // a group does not end where its file does
		had += (more + g.growth - 1) / g.growth * g.growth
	}
	size, err := g.file.Size()
	if err != nil {
		return fmt.Errorf("read %s: %w", g.name, err)
	}
	if size < had {
		return fmt.Errorf("%w: %s has %d bytes and was made %d long before what is in it was written: it was cut off, and what was acknowledged last may be missing; bring the file back as it was, or restore a backup", ErrDamaged, g.name, size, had)
	}
	return nil
}
