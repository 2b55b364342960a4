package httpapi

import (
	"crypto/rand"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
)

// keptLetters is how many dead letters can be asked for.
const keptLetters = 1000

// DeadLetter is a message that reached nobody.
type DeadLetter struct {
	// Number counts the dead letters of the server's run, from 1.
	Number uint64    `json:"number"`
	At     time.Time `json:"at"`
	// To is the path of an actor, or pod/name for an entity.
	To string `json:"to"`
	// Message is the message's name, or its Go type.
	Message string `json:"message"`
	// Asked says that somebody waited for an answer.
	Asked  bool   `json:"asked,omitempty"`
	Reason string `json:"reason"`
}

// DeadLetterList are the last dead letters, oldest first.
type DeadLetterList struct {
	Items []DeadLetter `json:"items"`
	// Count is how many there have been since the server started.
	Count uint64 `json:"count"`
}

// deadLetters keeps the last dead letters of a system. It is safe for concurrent
// use.
type deadLetters struct {
	cancel func()
	run    string // of the server, since each counts anew

	mu    sync.Mutex
	last  []DeadLetter // a ring, once it is full
	count uint64
	more  chan struct{} // closed at the next one
}

func (d *deadLetters) listen(sys *actor.System) {
	d.more, d.run = make(chan struct{}), rand.Text()[:8]
	d.cancel = sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) { d.add(letterOf(z)) })
}

// letterOf says of a dead letter what people may see: not what is in it.
func letterOf(z actor.ZombieMsg) DeadLetter {
	l := DeadLetter{At: z.At.UTC(), To: strings.ToValidUTF8(z.To, "\uFFFD"), Asked: z.Message.Reply != nil, Message: typeName(z.Message.Payload)}
	if m, ok := z.Message.Payload.(*entity.Message); ok {
		l.Message = m.Name()
	}
	if z.Reason != nil {
		l.Reason = z.Reason.Error()
	}
	return l
}

func (d *deadLetters) add(l DeadLetter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count++
	l.Number = d.count
	if len(d.last) < keptLetters {
		d.last = append(d.last, l)
	} else {
		d.last[(d.count-1)%keptLetters] = l
	}
	close(d.more)
	d.more = make(chan struct{})
}

// after returns the letters behind a number that are kept, at most so many of the
// last ones, how many there have been, and what tells of the next.
func (d *deadLetters) after(number uint64, most int) (letters []DeadLetter, count uint64, more <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := d.count - uint64(len(d.last))
	for n := max(number, first, d.count-min(d.count, uint64(most))); n < d.count; n++ {
		letters = append(letters, d.last[n%keptLetters])
	}
	return letters, d.count, d.more
}

// getDeadLetters answers with the last dead letters, or with a stream of them for
// who accepts events alone.
func getDeadLetters(c *call) error {
	o, err := c.page()
	if err != nil {
		return err
	}
	if !c.acceptsAlone(eventsType) {
		letters, count, _ := c.api.letters.after(0, o.Limit)
		if letters == nil {
			letters = []DeadLetter{}
		}
		return c.json(http.StatusOK, DeadLetterList{Items: letters, Count: count})
	}
	_, count, _ := c.api.letters.after(0, 0)
	id := c.r.Header.Get(lastEventHeader)
	if id == "" {
		return c.streamDeadLetters(count, false)
	}
	run, number, found := strings.Cut(id, "-")
	seen, err := strconv.ParseUint(number, 10, 64)
	switch {
	case !found || err != nil:
		return badLastEvent()
	case run != c.api.letters.run || seen > count:
		return c.streamDeadLetters(0, true)
	}
	return c.streamDeadLetters(seen, false)
}

// letterID is the id of an event that tells of a dead letter.
func (d *deadLetters) letterID(number uint64) string {
	return d.run + "-" + strconv.FormatUint(number, 10)
}

// streamDeadLetters sends the dead letters behind a number, until the client goes
// or the server ends. What is missing in between is told as a gap: of those that
// were dropped, or, for a client that has seen ones of an earlier run of the
// server, of all that it had behind them.
func (c *call) streamDeadLetters(seen uint64, restarted bool) error {
	letters := &c.api.letters
	leave, err := c.api.watching.enter("")
	if err != nil {
		return err
	}
	defer leave()
	s := c.eventStream()
	beats := s.beats()
	defer beats.Stop()
	gap := func(g gapData) {
		data, _ := encode(g) // numbers and a word always have JSON
		s.add("gap", letters.letterID(g.To), data)
	}
	if restarted {
		gap(gapData{Reason: gapRestarted})
	}
	for {
		some, _, more := letters.after(seen, keptLetters)
		if len(some) > 0 && c.revoked(s) {
			return nil
		}
		for _, l := range some {
			if l.Number > seen+1 {
				gap(gapData{From: seen + 1, To: l.Number - 1, Reason: gapDropped})
			}
			data, err := encode(l)
			if err != nil {
				return nil //nolint:nilerr // the answer has begun
			}
			s.add("deadletter", letters.letterID(l.Number), data)
			seen = l.Number
		}
		if s.pending() > 0 && s.flush() != nil {
			return nil
		}
		select {
		case <-more:
		case <-beats.C:
			if c.revoked(s) || s.heartbeat() != nil {
				return nil
			}
		case <-c.r.Context().Done():
			return nil
		case <-c.api.ending.Done():
			s.stopping()
			return nil
		}
	}
}

// gapData is the data of a gap event of dead letters: the numbers of those that
// are not told of, both included, or 0 when they are of an earlier run.
type gapData struct {
	From   uint64 `json:"from"`
	To     uint64 `json:"to"`
	Reason string `json:"reason"`
}

// The reasons of gaps.
const (
	gapDropped   = "dropped"   // they are not kept any more
	gapRestarted = "restarted" // the server was started again, and kept none
)

// acceptsAlone reports whether the request's Accept names a media type, and no other.
func (c *call) acceptsAlone(media string) (alone bool) {
	for one := range strings.SplitSeq(strings.Join(c.r.Header.Values("Accept"), ","), ",") {
		named, parameters, err := mime.ParseMediaType(one)
		if q, qErr := strconv.ParseFloat(parameters["q"], 64); err != nil || qErr == nil && q == 0 {
			continue // nothing, or what is not accepted
		}
		if named != media {
			return false
		}
		alone = true
	}
	return alone
}

// maxWatchFilters is how many bytes the filters of all watches have together. A
// filter takes some 300 bytes of memory for each of them, as long as its watch goes
// on.
const maxWatchFilters = 1 << 20

// watching counts those who watch, and the bytes of their filters, up to bounds.
type watching struct {
	most, mostBytes int

	mu         sync.Mutex
	now, bytes int
}

// enter lets somebody watch with a filter, until leave is called.
func (w *watching) enter(filter string) (leave func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.now >= w.most:
		return nil, refuse(CodeTooManyWatchers, "as many are watching as may: "+strconv.Itoa(w.most))
	case len(filter) > w.mostBytes-w.bytes:
		return nil, refuse(CodeTooManyWatchers, fmt.Sprintf("the filters of all who watch may have %d bytes, and with the %d of this one would have more: watch with a shorter one or without, or when others have ended", w.mostBytes, len(filter)))
	}
	w.now++
	w.bytes += len(filter)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.now--
		w.bytes -= len(filter)
	}, nil
}

func (w *watching) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

const lastEventHeader = "Last-Event-ID"

func badLastEvent() error {
	return refuse(CodeBadQuery, lastEventHeader+" is not the id of an event")
}

// EndStreams ends the answers that would go on for ever: events, and waits for
// futures. Those that come later end at once.
func (a *API) EndStreams() { a.endStreams() }
