package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
	"github.com/twinsrv/twinsrv/entity"
)

const (
	// maxAhead is how many headlines are sent behind the one through which all
	// have had their effect, durably. After a crash so many may be sent again.
	maxAhead = 128
	// attempts is how often a headline is sent that is refused, and the pause
	// before the first repetition, which doubles.
	attempts   = 8
	firstPause = 50 * time.Millisecond
	// answerTime is how long a feed that is to end waits for the answers to what
	// it has sent.
	answerTime = 10 * time.Second
)

// fed is what a feed has done.
type fed struct {
	headlines, mentions int
	took                time.Duration
}

// String is the closing line of a feed.
func (f fed) String() string {
	return fmt.Sprintf("%d headlines, %d mentions, %.1f seconds", f.headlines, f.mentions, f.took.Seconds())
}

// feed sends the headlines of a generator into a throttle, in their order, and
// notes through which one they have had their effect. A headline that is refused
// is sent again.
type feed struct {
	generator *generator
	name      string       // of the feed; its headlines' ids begin with it
	state     actor.Target // is told how far it has come
	to        actor.Target

	ends  chan ended
	saved chan saved
	again chan int // numbers of headlines, or 0 for the state

	firstPause time.Duration

	next    int          // the next headline that is sent first
	through int          // all of these have had their effect
	kept    int          // so the state says
	saving  bool         // it is being told, or to be told again
	refused int          // how often it was, in a row
	done    map[int]bool // behind through
	open    int          // sent and not answered, or waiting to be sent again
	tries   map[int]int
	sum     fed
}

// ended is the answer to a headline.
type ended struct {
	number    int
	companies int
	err       error
}

// saved is the answer to what the state was told.
type saved struct {
	through int
	err     error
}

func newFeed(g *generator, name string, state actor.Target, through int, to actor.Target) *feed {
	return &feed{
		generator: g, name: name, state: state, to: to, firstPause: firstPause,
		// No answer waits for the feed, not even when it has ended.
		ends: make(chan ended, maxAhead), saved: make(chan saved, 1), again: make(chan int, maxAhead+1),
		next: through + 1, through: through, kept: through, done: map[int]bool{}, tries: map[int]int{},
	}
}

// run sends the headlines through last, or without an end when that is 0, until
// ctx ends.
func (f *feed) run(ctx context.Context, last int) (fed, error) {
	begin := time.Now()
	err := f.send(ctx, last)
	f.sum.took = time.Since(begin)
	return f.sum, err
}

func (f *feed) send(ctx context.Context, last int) error {
	over := ctx.Done()
	var late <-chan time.Time
	for {
		for ; ctx.Err() == nil && (last == 0 || f.next <= last) && f.next <= f.kept+maxAhead; f.next++ {
			f.open++
			f.post(f.next)
		}
		if f.kept == f.through && f.open == 0 {
			return nil
		}
		if !f.saving && f.kept < f.through {
			f.save()
		}
		select {
		case <-over:
			over, late = nil, time.After(answerTime)
		case <-late:
			return nil // what is open is sent again some time
		case number := <-f.again:
			switch {
			case number == 0:
				f.saving = false
			case ctx.Err() != nil:
				f.open--
			default:
				f.post(number)
			}
		case e := <-f.ends:
			if err := f.answered(ctx, e); err != nil {
				return err
			}
		case s := <-f.saved:
			if err := f.noted(ctx, s); err != nil {
				return err
			}
		}
	}
}

func (f *feed) post(number int) {
	reply := f.to.System().OnReply(func(v any, err error) {
		d, _ := v.(delivered)
		f.ends <- ended{number, d.companies, err}
	})
	l := line{id: fmt.Sprintf("%s-%d", f.name, number), text: f.generator.headline(number)}
	if err := f.to.Post(actor.Message{Payload: l, Reply: reply}); err != nil {
		reply.Fail(err)
	}
}

func (f *feed) answered(ctx context.Context, e ended) error {
	if e.err != nil {
		if ctx.Err() != nil {
			f.open--
			return nil
		}
		n := f.tries[e.number] + 1
		f.tries[e.number] = n
		if rejected := (*entity.RejectedError)(nil); n == attempts || errors.As(e.err, &rejected) {
			return fmt.Errorf("headline %d was refused %d times: %w", e.number, n, e.err)
		}
		f.later(n, e.number)
		return nil
	}
	f.open--
	delete(f.tries, e.number)
	f.sum.headlines++
	f.sum.mentions += e.companies
	f.done[e.number] = true
	for f.done[f.through+1] {
		f.through++
		delete(f.done, f.through)
	}
	return nil
}

// later has something sent again after its nth refusal.
func (f *feed) later(n, what int) {
	time.AfterFunc(f.firstPause<<(n-1), func() { f.again <- what })
}

// noted goes on when the state has answered.
func (f *feed) noted(ctx context.Context, s saved) error {
	if s.err == nil {
		f.saving, f.kept, f.refused = false, s.through, 0
		return nil
	}
	if f.refused++; f.refused == attempts || ctx.Err() != nil {
		return fmt.Errorf("note that the feed has come to headline %d: %w", s.through, s.err)
	}
	f.later(f.refused, 0)
	return nil
}

// save tells the state how far the feed has come.
func (f *feed) save() {
	f.saving = true
	through := f.through
	reply := f.to.System().OnReply(func(_ any, err error) { f.saved <- saved{through, err} })
	if err := f.state.Post(actor.Message{Payload: FeedCame{Through: through}, Reply: reply}); err != nil {
		reply.Fail(err)
	}
}

// rate returns a throttle's rate of so many headlines a second, which come in
// parts of a twentieth of a second.
func rate(perSecond int) patterns.Rate {
	const parts = 20
	if perSecond <= parts {
		return patterns.Rate{Every: time.Second / time.Duration(max(perSecond, 1)), Burst: 1}
	}
	return patterns.Rate{Every: time.Second * time.Duration((perSecond+parts-1)/parts) / time.Duration(perSecond), Burst: (perSecond + parts - 1) / parts}
}

// report says on out what a feed has done.
func report(ctx context.Context, out io.Writer, sum fed, last int) {
	_, _ = fmt.Fprintln(out, sum)
	if ctx.Err() != nil && last > 0 {
		_, _ = fmt.Fprintln(out, "interrupted; the same command goes on where this one stopped")
	}
}
