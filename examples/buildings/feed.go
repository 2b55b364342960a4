package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/pod"
)

const (
	// inFlight is how many messages to one building wait for their answers at a
	// time; a building's mailbox takes many more.
	inFlight = 64
	// answerTime is how long a feed that was interrupted waits for the answers
	// to what it has sent.
	answerTime = 10 * time.Second
)

// tally is what became of a feed's messages.
type tally struct {
	Sent, Acknowledged, Refused int
	First                       error // why the first refused one was
	Took                        time.Duration
}

// String is the closing line of a feed.
func (t tally) String() string {
	s := fmt.Sprintf("%d messages sent, %d acknowledged, %d refused, %.1f seconds", t.Sent, t.Acknowledged, t.Refused, t.Took.Seconds())
	if open := t.Sent - t.Acknowledged - t.Refused; open > 0 {
		s += fmt.Sprintf("; %d without an answer, which may be done or not", open)
	}
	return s
}

// err says why a feed is not complete.
func (t tally) err() error {
	switch {
	case t.First != nil:
		return fmt.Errorf("%d messages were refused; run the same command again to go on. The first: %w", t.Refused, t.First)
	case t.Sent > t.Acknowledged:
		return errors.New("some messages had no answer; run the same command again to go on")
	}
	return nil
}

// queue is the messages to one entity, in their order.
type queue struct {
	to   entity.Ref
	size int
	at   func(i int) any // the message at i, which is at least 0 and less than size
}

// feed sends queues of messages to entities and waits for all answers. It sends
// as fast as they come: in order to each entity, with inFlight of its messages
// on their way at a time. A queue ends at its first refused message, so that no
// later one takes its place.
type feed struct {
	sent, acknowledged, refused atomic.Int64

	mu    sync.Mutex
	first error
}

// run sends all queues. When ctx ends it stops sending and waits answerTime at
// most. progress is called now and then with the number of answers.
func (f *feed) run(ctx context.Context, queues []queue, progress func(answered int)) tally {
	begin := time.Now()
	var sending sync.WaitGroup
	for _, q := range queues {
		sending.Go(func() { f.send(ctx, q) })
	}
	done := make(chan struct{})
	go func() {
		sending.Wait()
		close(done)
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for open := true; open; {
		select {
		case <-tick.C:
		case <-done:
			open = false
		}
		progress(int(f.acknowledged.Load() + f.refused.Load()))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return tally{
		Sent: int(f.sent.Load()), Acknowledged: int(f.acknowledged.Load()), Refused: int(f.refused.Load()),
		First: f.first, Took: time.Since(begin),
	}
}

// send sends one queue and returns when everything that it sent is answered.
func (f *feed) send(ctx context.Context, q queue) {
	window := make(chan struct{}, inFlight) // holds one for each message on its way
	var ended atomic.Bool
	answered := func(_ any, err error) {
		if err != nil {
			ended.Store(true)
		}
		f.answered(err)
		<-window
	}
	for i := 0; i < q.size && !ended.Load() && ctx.Err() == nil; i++ {
		select {
		case <-ctx.Done():
			continue
		case window <- struct{}{}:
		}
		f.sent.Add(1)
		reply := q.to.System().OnReply(answered)
		if err := q.to.Post(actor.Message{Payload: q.at(i), Reply: reply}); err != nil {
			reply.Fail(err)
		}
	}
	f.settle(ctx, window)
}

// settle waits until nothing is on its way.
func (f *feed) settle(ctx context.Context, window chan struct{}) {
	late := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(answerTime, func() { close(late) }) })
	defer stop()
	for range inFlight {
		select {
		case window <- struct{}{}:
		case <-late:
			return
		}
	}
}

func (f *feed) answered(err error) {
	if err == nil {
		f.acknowledged.Add(1)
		return
	}
	f.refused.Add(1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		f.first = err
	}
}

// describe tells each building what the file says of it.
func describe(ctx context.Context, buildings *pod.Handle[Building], list []described) tally {
	queues := make([]queue, len(list))
	for i, d := range list {
		queues[i] = queue{to: buildings.Ref(d.name), size: 1, at: func(int) any { return d.Describe }}
	}
	return new(feed).run(ctx, queues, func(int) {})
}

// followers returns the queues of those buildings whose weather file has the
// given name. Each begins behind the readings that the building has had
// already, so that a feed which was interrupted goes on where it stood.
func followers(ctx context.Context, buildings *pod.Handle[Building], list []described, file string, readings []Outdoor) ([]queue, error) {
	var queues []queue
	for _, d := range list {
		if d.WeatherFile != file {
			continue
		}
		v, err := buildings.Get(ctx, d.name)
		if err != nil {
			return nil, err
		}
		rest := readings[min(v.State.Readings, len(readings)):]
		queues = append(queues, queue{to: buildings.Ref(d.name), size: len(rest), at: func(i int) any { return rest[i] }})
	}
	return queues, nil
}

// feedFiles brings a file of buildings and, if there is one, a weather file
// into the pod, and says on out what it did.
func feedFiles(ctx context.Context, out io.Writer, buildings *pod.Handle[Building], f files, progress func(total int) progressFunc) error {
	if t := describe(ctx, buildings, f.buildings); t.err() != nil {
		return fmt.Errorf("describe the buildings: %w", t.err())
	}
	_, _ = fmt.Fprintf(out, "%d buildings described from %s\n", len(f.buildings), f.metadata)
	if f.weather == "" {
		return nil
	}
	queues, err := followers(ctx, buildings, f.buildings, f.weather, f.readings)
	if err != nil {
		return fmt.Errorf("find the buildings that follow %s: %w", f.weather, err)
	}
	total := 0
	for _, q := range queues {
		total += q.size
	}
	_, _ = fmt.Fprintf(out, "%d of them follow the %d readings of %s; %d messages to send\n", len(queues), len(f.readings), f.weather, total)
	show := progress(total)
	t := new(feed).run(ctx, queues, show.update)
	show.end()
	_, _ = fmt.Fprintln(out, t)
	if ctx.Err() != nil && t.Sent < total {
		_, _ = fmt.Fprintln(out, "interrupted; the same command goes on where this one stopped")
	}
	return t.err()
}
