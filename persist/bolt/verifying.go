package bolt

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
)

// walking is the check of a file's pages that goes on while the store serves
// already. It is of the file as it was opened: until it has ended, nothing is
// written. A damaged list of free pages would have pages overwritten that are in
// use.
//
// Nor is anything believed meanwhile that was not checked: see Store.believe.
type walking struct {
	first   *checker // has accounted for the free pages
	root    uint64
	txid    uint64
	buckets map[string]bucketRoot
	hold    <-chan struct{} // nil, or when to begin

	once sync.Once
	stop chan struct{} // closed to end it early
	done chan struct{} // closed when it has ended
	err  error         // set before
}

// errStopped is of a walk that was ended early.
var errStopped = errors.New("the check of the file was stopped")

// end ends the walk early.
func (w *walking) end() { w.once.Do(func() { close(w.stop) }) }

// walkLater checks the root of the file and the store's own numbers, and leaves
// the rest to a walking. That is nil when there was nothing to leave.
func walkLater(c *checker, m meta) (*walking, error) {
	w := &walking{first: c, root: m.root, txid: m.txid, buckets: map[string]bucketRoot{},
		stop: make(chan struct{}), done: make(chan struct{})}
	own := c.fork()
	tree := walk{c: own, root: true, found: func(b bucketRoot) { w.buckets[b.name] = b }}
	if err := tree.page(m.root, nil, nil); err != nil {
		return nil, err
	}
	numbers, ok := w.buckets[metaBucket]
	if !ok || m.freelist == noFreelist {
		// Another program's file, or one in which bbolt walks all pages itself,
		// unguarded.
		return nil, c.all(m.root)
	}
	return w, own.bucket(numbers, span{})
}

// run walks the whole file.
func (w *walking) run() error {
	if w.hold != nil {
		select {
		case <-w.hold:
		case <-w.stop:
		}
	}
	c := w.first.fork()
	c.stop = w.stop
	return c.all(w.root)
}

// passed says whether the whole file has been found to be whole.
func (w *walking) passed() bool {
	select {
	case <-w.done:
		return w.err == nil
	default:
		return false
	}
}

// check walks from the root of a bucket to what is between the bounds.
func (w *walking) check(bucket string, s span) error {
	b, ok := w.buckets[bucket]
	if !ok {
		return nil // Open has found that out
	}
	return w.first.fork().bucket(b, s)
}

// span is a part of a bucket: the keys from a key on, and as many as most, or
// all before a key, or all.
type span struct {
	from, before []byte
	most         int
}

// doubt is damage that a reader met before the walk did.
type doubt struct {
	of    *walking
	cause error
}

func (d *doubt) Error() string { return d.cause.Error() }
func (d *doubt) Unwrap() error { return d.cause }

// believe makes sure that what a transaction is about to read in a part of a
// bucket is what was written, above all that what is absent there is not just
// hidden by damage. Once the whole file was walked that is known; until then it
// walks to that part. It is called inside view, which deals with its error.
func (s *Store) believe(tx *bbolt.Tx, bucket string, part span) error {
	w := s.walk
	if w == nil || w.passed() || uint64(tx.ID()) != w.txid {
		return nil
	}
	if err := w.check(bucket, part); err != nil {
		return &doubt{of: w, cause: err}
	}
	return nil
}

// walkOn runs the walk on a goroutine of its own.
func (s *Store) walkOn(w *walking) {
	if err := w.run(); err != nil {
		w.err = s.ruin(w, err)
	}
	close(w.done)
}

// ruin takes a store whose file was found damaged out of service for good. It
// returns the damage, or why the store was out of service before.
func (s *Store) ruin(w *walking, damage error) error {
	s.leave()
	defer s.mu.Unlock()
	switch {
	case s.ruined != nil:
		return s.ruined
	case s.down != nil:
		return s.down // the file was closed under the walk
	case s.walk != w || errors.Is(damage, errStopped):
		return fmt.Errorf("%s: %w: it was closed before all of it was checked", s.path, persist.ErrUnavailable)
	}
	w.end()
	s.ruined = damage
	s.down = s.unavailable(damage)
	release(s.db, s.file, s.path, false)
	s.db, s.file = nil, nil
	return damage
}

// current returns the walk that has not passed yet, or nil.
func (s *Store) current() *walking {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.walk == nil || s.walk.passed() {
		return nil
	}
	return s.walk
}

// Verified waits until the whole file has been checked, and returns nil when it
// is whole. An error that wraps ErrDamaged says which page is not what was
// written; then the store is out of service for good. One that wraps
// persist.ErrUnavailable says that ctx ended, or the store failed or was closed,
// before everything was checked. With Config.NoVerify nothing is checked, and
// the answer nil.
func (s *Store) Verified(ctx context.Context) error {
	w := s.current()
	if w == nil {
		return nil
	}
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return s.notBegun(ctx.Err())
	}
}

// begin waits until the whole file has been checked, and takes the turn.
func (s *Store) begin(ctx context.Context) error {
	if err := s.whole(ctx); err != nil {
		return err
	}
	return s.take(ctx)
}

// whole is Verified as the other methods tell it.
func (s *Store) whole(ctx context.Context) error {
	err := s.Verified(ctx)
	if err != nil && !errors.Is(err, persist.ErrUnavailable) {
		return s.unavailable(err)
	}
	return err
}
