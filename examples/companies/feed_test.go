package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist/persisttest"
)

// feedTo sends headlines as the example does.
func (e exchange) feedTo(ctx context.Context, t *testing.T, last int) string {
	t.Helper()
	var out strings.Builder
	o := options{Rate: 1_000_000, Headlines: last, Seed: 7}
	require.NoError(t, o.feed(ctx, &out, e.Server, e.facts, e.at))
	return out.String()
}

// A feed counts exactly what its headlines say.
func TestFeed(t *testing.T) {
	e := startInMemory(t)
	out := e.feedTo(t.Context(), t, 1000)
	require.Regexp(t, `^14 companies of companies\.csv; the feed goes on behind headline 0
1000 headlines, \d+ mentions, \d+\.\d seconds
$`, out)
	companies, sectors := expected(e.facts, 7, 1000)
	require.Equal(t, companies, states(t, e.companies))
	e.settled(t, sectors)
	for name, f := range states(t, e.feeds) {
		require.Equal(t, 1000, f.Through)
		require.True(t, strings.HasPrefix(name, "7-"))
	}
}

// A feed that is stopped, here with its server, goes on where it was.
func TestAFeedGoesOn(t *testing.T) {
	store := persisttest.NewMemory()
	dice := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		e, stop := start(t, store)
		ctx, cancel := context.WithCancel(t.Context())
		relay := time.AfterFunc(time.Duration(dice.IntN(30))*time.Millisecond, cancel)
		e.feedTo(ctx, t, 1500)
		relay.Stop()
		cancel()
		stop()
		store = store.Again()
	}
	e, _ := start(t, store)
	e.feedTo(t.Context(), t, 1500)
	companies, sectors := expected(e.facts, 7, 1500)
	require.Equal(t, companies, states(t, e.companies))
	e.settled(t, sectors)

}

// What a crash has sent again counts once.
func TestHeadlinesThatComeAgain(t *testing.T) {
	e := startInMemory(t)
	names := newFinder(e.facts)
	relay, err := open(t.Context(), e.System(), names, e.facts, e.pods, 1_000_000, e.at)
	require.NoError(t, err)
	for _, through := range []int{0, 500 - maxAhead, 500} {
		sum, err := newFeed(newGenerator(names, 7), "f", e.feeds.Ref("f"), through, relay).run(t.Context(), 500)
		require.NoError(t, err)
		require.Equal(t, 500-through, sum.headlines)
		companies, sectors := expected(e.facts, 7, 500)
		require.Equal(t, companies, states(t, e.companies))
		e.settled(t, sectors)
	}
}

// target takes headlines in the newsroom's place.
type target struct {
	*actor.Ref
	post func(m actor.Message) error
}

func (g target) Post(m actor.Message) error { return g.post(m) }

// No more than maxAhead headlines are sent that a crash would have sent again.
func TestAFeedIsBounded(t *testing.T) {
	e := startInMemory(t)
	replies := make(chan *actor.Promise, 10_000)
	to := target{e.System().User(), func(m actor.Message) error { replies <- m.Reply; return nil }}
	f := newFeed(newGenerator(newFinder(e.facts), 1), "f", e.feeds.Ref("f"), 0, to)
	done := make(chan error, 1)
	go func() {
		_, err := f.run(t.Context(), 3*maxAhead)
		done <- err
	}()
	var first []*actor.Promise
	for range maxAhead {
		first = append(first, <-replies)
	}
	slices.Reverse(first)
	for _, r := range first[:maxAhead-2] { // all but the first two
		require.Empty(t, replies)
		r.Complete(delivered{})
	}
	require.Empty(t, states(t, e.feeds), "nothing is whole")
	first[maxAhead-1].Complete(delivered{})
	(<-replies).Complete(delivered{})
	require.Equal(t, map[string]Feed{"f": {Through: 1}}, states(t, e.feeds), "the second is still under way")
	first[maxAhead-2].Complete(delivered{})
	for range 2*maxAhead - 1 {
		(<-replies).Complete(delivered{})
	}
	require.NoError(t, <-done)
	require.Equal(t, map[string]Feed{"f": {Through: 3 * maxAhead}}, states(t, e.feeds))
}

// A headline that is refused is sent again, so often.
func TestRefusedHeadlinesAreSentAgain(t *testing.T) {
	e := startInMemory(t)
	tries := map[string]int{}
	for times, want := range map[int]string{attempts - 1: "", attempts: "headline 3 was refused 8 times: "} {
		clear(tries)
		to := target{e.System().User(), func(m actor.Message) error {
			id := m.Payload.(line).id
			if tries[id]++; strings.HasSuffix(id, "-3") && tries[id] <= times {
				return errors.New("not now")
			}
			m.Reply.Complete(delivered{companies: 1})
			return nil
		}}
		f := newFeed(newGenerator(newFinder(e.facts), 1), "f", e.feeds.Ref("f"), 0, to)
		f.firstPause = time.Microsecond
		sum, err := f.run(t.Context(), 10)
		if want == "" {
			require.NoError(t, err)
			require.Equal(t, 10, sum.mentions)
			require.Equal(t, 10, f.kept)
		} else {
			require.ErrorContains(t, err, want)
			require.LessOrEqual(t, f.through, 2)
		}
	}
}

// What the state refuses is told again, so often; what is sent meanwhile is
// bounded.
func TestARefusedStateIsToldAgain(t *testing.T) {
	e := startInMemory(t)
	for times, want := range map[int]string{attempts - 1: "", attempts: "note that the feed has come to headline "} {
		sent, tries := 0, 0
		to := target{e.System().User(), func(m actor.Message) error {
			sent++
			m.Reply.Complete(delivered{})
			return nil
		}}
		state := target{e.System().User(), func(m actor.Message) error {
			if tries++; tries <= times {
				require.LessOrEqual(t, sent, maxAhead)
				return errors.New("not now")
			}
			m.Reply.Complete(nil)
			return nil
		}}
		f := newFeed(newGenerator(newFinder(e.facts), 1), "f", state, 0, to)
		f.firstPause = time.Microsecond
		sum, err := f.run(t.Context(), 2*maxAhead)
		if want == "" {
			require.NoError(t, err)
			require.Equal(t, 2*maxAhead, sum.headlines)
			require.Equal(t, 2*maxAhead, f.kept)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}

func TestRates(t *testing.T) {
	for _, n := range []int{1, 3, 20, 21, 50, 100, 999, 100_000} {
		r := rate(n)
		require.InEpsilon(t, float64(n), float64(r.Burst)/r.Every.Seconds(), 0.001, n)
		require.LessOrEqual(t, r.Every, time.Second)
	}
}
