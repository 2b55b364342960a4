package httpapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twinsrv/twinsrv/actor/patterns"
)

const (
	// futureLife is how long the end of a future can be asked for.
	futureLife = 15 * time.Minute
	// maxFutures is how many futures there may be, those that have ended included;
	// then the oldest of these are forgotten early ...
	maxFutures = 10_000
	// ... as they are when their results have more bytes than this together.
	maxFutureBytes = 64 << 20
)

// futures are the answers that clients have asked for without waiting. They are
// kept in memory alone: what a message has done outlives the server, the future
// does not. It is safe for concurrent use.
type futures struct {
	now   func() time.Time
	bound int // 0: maxFutures

	mu    sync.Mutex
	byID  map[string]*future
	ended []*future // those in byID that have ended, oldest first
	bytes int       // of the results of these
	wait  sync.WaitGroup
}

// future is one answer that will come, or has.
type future struct {
	id, pod, entity, message string
	created                  time.Time
	answer                   *patterns.Future
	done                     chan struct{} // closed at its end; then the fields below are set

	status  string
	outcome outcome
	at      time.Time // of its end
}

// The states of a future.
const (
	futurePending   = "pending"
	futureDone      = "done"      // the message was handled
	futureFailed    = "failed"    // it was not, or its handler refused it
	futureCancelled = "cancelled" // nobody waits any more; the outcome is unknown
	futureExpired   = "expired"   // there was no answer within the timeout; the outcome is unknown
)

// start keeps a future, which begin starts. It ends by itself.
func (s *futures) start(f *future, begin func() (*patterns.Future, error), outcome func(v any, err error) outcome) error {
	s.mu.Lock()
	s.expire()
	if len(s.byID) >= s.most() {
		if len(s.ended) == 0 {
			s.mu.Unlock()
			return fmt.Errorf("%w: %d of them; try again when some have ended", patterns.ErrOverloaded, s.most())
		}
		s.drop(s.ended[0])
	}
	f.id, f.created, f.done = rand.Text(), s.now(), make(chan struct{})
	if s.byID == nil {
		s.byID = make(map[string]*future)
	}
	s.byID[f.id] = f // its room is taken before anything is sent
	s.mu.Unlock()
	answer, err := begin()
	if err != nil {
		s.mu.Lock()
		delete(s.byID, f.id)
		s.mu.Unlock()
		return err
	}
	f.answer = answer
	s.wait.Go(func() {
		v, err := answer.Wait(context.Background()) // every one ends, by its timeout at the latest
		s.end(f, outcome(v, err), err)
	})
	return nil
}

func (s *futures) most() int { return cmp.Or(s.bound, maxFutures) }

// end notes how a future has ended.
func (s *futures) end(f *future, o outcome, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.outcome, f.status, f.at = o, endedAs(err, o), s.now()
	close(f.done)
	if s.byID[f.id] != f { // forgotten meanwhile
		return
	}
	s.ended = append(s.ended, f)
	s.bytes += o.size()
	s.expire()
}

// expire forgets the futures that have been kept for long enough, and the oldest
// when there are too many bytes. mu is held.
func (s *futures) expire() {
	limit := s.now().Add(-futureLife)
	for len(s.ended) > 0 && (s.ended[0].at.Before(limit) || s.bytes > maxFutureBytes && len(s.ended) > 1) {
		s.drop(s.ended[0])
	}
}

// drop forgets a future. mu is held.
func (s *futures) drop(f *future) {
	delete(s.byID, f.id)
	if i := slices.Index(s.ended, f); i >= 0 {
		s.ended = slices.Delete(s.ended, i, i+1)
		s.bytes -= f.outcome.size()
	}
}

// get returns a future that is kept, or nil.
func (s *futures) get(id string) *future {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	return s.byID[id]
}

// cancel ends the waiting for a future; one that has ended is forgotten.
func (s *futures) cancel(f *future) {
	select {
	case <-f.done:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(f)
	default:
		f.answer.Cancel()
		<-f.done
	}
}

// count returns how many futures are kept, and how many of them have not ended.
func (s *futures) count() (kept, pending int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID), len(s.byID) - len(s.ended)
}
