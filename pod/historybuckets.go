package pod

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/twinsrv/twinsrv/persist"
)

const (
	// MaxBuckets is the most buckets that a BucketRequest may ask for.
	MaxBuckets = 10_000
	// MaxBucketChanges is the most changes that are read for one.
	MaxBucketChanges = 200_000
)

// ErrBuckets refuses a BucketRequest: it asks for no time, for too many buckets,
// or needs too many changes read.
var ErrBuckets = errors.New("these buckets cannot be made")

// BucketRequest asks how a number of an entity's state was over time.
type BucketRequest struct {
	// Value reads the number, which is finite, out of a state; false when it has
	// none there.
	Value func(*View) (float64, bool)
	// From and To bound the time: a change at From counts, one at To does not. To
	// is now when it is zero.
	From, To time.Time
	// Width is the time of one bucket. The first begins at From.
	Width time.Duration
}

// Bucket is what the states that changes in a part of time led to had as their
// number.
type Bucket struct {
	Start     time.Time
	Count     int
	Min, Max  float64
	Avg, Last float64
}

// Buckets are an entity's buckets in the order of time; empty ones are left out.
type Buckets struct {
	Buckets []Bucket
	// Since is not zero when retention has dropped changes of the time that was
	// asked for: what is before it is missing.
	Since time.Time
}

// Buckets reads the changes of an entity's present life and puts a number of the
// states that they led to in buckets of time. It fails with ErrBuckets, and as
// Get does.
func (p *Pod) Buckets(ctx context.Context, name string, r BucketRequest) (Buckets, error) {
	if r.To.IsZero() {
		r.To = p.pods.sys.Now()
	}
	switch span := r.To.Sub(r.From); {
	case r.Width <= 0 || r.From.IsZero() || span <= 0:
		return Buckets{}, fmt.Errorf("%w: they need a time to begin, a later one to end, and a width above 0", ErrBuckets)
	case span == math.MaxInt64:
		return Buckets{}, fmt.Errorf("%w: from %s to %s is more time than can be counted; ask for a shorter one", ErrBuckets, r.From.Format(time.RFC3339), r.To.Format(time.RFC3339))
	case (span-1)/r.Width >= MaxBuckets:
		return Buckets{}, fmt.Errorf("%w: %s in buckets of %s are more than %d; make them wider", ErrBuckets, span, r.Width, MaxBuckets)
	}
	head, err := p.headOf(ctx, name)
	if err != nil {
		return Buckets{}, err
	}
	key := persist.Key{Pod: p.name, Name: name}
	oldest, err := p.oldestKept(ctx, key, head)
	if err != nil {
		return Buckets{}, err
	}
	var out Buckets
	from := oldest.Revision
	switch {
	case oldest.Time.Before(r.From):
		last, err := p.seekTime(ctx, oldest, head.Revision, r.From.Add(-1))
		if err != nil {
			return Buckets{}, err
		}
		from = last.Revision + 1
	case !whole(&oldest):
		out.Since = oldest.Time
	}
	return out, p.fill(ctx, &out, &r, key, head.Life, from, head.Revision)
}

// fill puts the changes of a life between two revisions in their buckets.
func (p *Pod) fill(ctx context.Context, out *Buckets, r *BucketRequest, key persist.Key, life, from, through uint64) error {
	limit, f := p.pods.pages(), fold{}
	for read := 0; ; {
		n := limit.next()
		changes, err := p.store().Changes(ctx, key, life, from, n)
		if err != nil {
			return fmt.Errorf("read the history of %s: %w", key, err)
		}
		limit.saw(changes)
		for i := range changes {
			c := &changes[i]
			if read++; read > MaxBucketChanges {
				return fmt.Errorf("%w: more than %d changes of %s lie in the time; ask for a shorter one", ErrBuckets, MaxBucketChanges, key)
			}
			if c.Revision > through || !c.Time.Before(r.To) {
				return nil
			}
			from = c.Revision + 1
			v, err := p.viewBehind(ctx, &f, c)
			if ctx.Err() != nil || errors.Is(err, persist.ErrUnavailable) {
				return err
			}
			if err != nil || c.Time.Before(r.From) { // it cannot be read, or the clock was set back
				continue
			}
			if x, is := r.Value(&v); is {
				out.add(r.From.Add(c.Time.Sub(r.From).Truncate(r.Width)), x)
			}
		}
		if len(changes) < n {
			return nil
		}
	}
}

// add counts a number into the bucket that starts at a time, which is not before
// the last one but where the clock was set back.
func (b *Buckets) add(start time.Time, x float64) {
	i := len(b.Buckets)
	for i > 0 && b.Buckets[i-1].Start.After(start) {
		i--
	}
	if i == 0 || !b.Buckets[i-1].Start.Equal(start) {
		b.Buckets = append(b.Buckets, Bucket{})
		copy(b.Buckets[i+1:], b.Buckets[i:])
		b.Buckets[i] = Bucket{Start: start, Min: x, Max: x}
		i++
	}
	k := &b.Buckets[i-1]
	k.Count++
	k.Min, k.Max, k.Last = min(k.Min, x), max(k.Max, x), x
	n := float64(k.Count)
	k.Avg += x/n - k.Avg/n // a difference of two could be more than every number
}
