package main

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
	"github.com/twinsrv/twinsrv/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits that end much sooner.
const patience = 30 * time.Second

// exchange is a server of the example without a listener.
type exchange struct {
	pods
	*server.Server
	facts *facts
	at    *atomic.Pointer[desk]
}

func start(t *testing.T, store persist.PersistenceService) (e exchange, stop func()) {
	t.Helper()
	return startWith(t, store, time.Hour)
}

// startWith has companies make a digest every so often.
func startWith(t *testing.T, store persist.PersistenceService, every time.Duration) (e exchange, stop func()) {
	t.Helper()
	f, err := sampleFacts()
	require.NoError(t, err)
	e = exchange{facts: f, at: &atomic.Pointer[desk]{}}
	e.Server, err = server.Open(t.Context(), server.Config{Service: store, Definitions: definitions(f, every, e.at)})
	require.NoError(t, err)
	stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, e.Close(ctx))
	}
	t.Cleanup(stop)
	e.pods, err = findPods(e.Pods())
	require.NoError(t, err)
	return e, stop
}

func startInMemory(t *testing.T) exchange {
	t.Helper()
	e, _ := start(t, persisttest.NewMemory())
	return e
}

func ask[T any](t *testing.T, to entity.Ref, msg any) T {
	t.Helper()
	v, err := entity.Ask[T](t.Context(), to, msg)
	require.NoError(t, err)
	return v
}

// states returns the states of a pod's entities by name.
func states[S any](t *testing.T, h *pod.Handle[S]) map[string]S {
	t.Helper()
	views, next, err := h.List(t.Context(), persist.ListOptions{Limit: 1000})
	require.NoError(t, err)
	require.Empty(t, next)
	all := map[string]S{}
	for _, v := range views {
		all[v.Name] = v.State
	}
	return all
}

// expected is what companies and sectors come to by the first headlines of a
// generator.
func expected(f *facts, seed uint64, headlines int) (companies map[string]Company, sectors map[string]Sector) {
	companies, sectors = map[string]Company{}, map[string]Sector{}
	names := newFinder(f)
	g := newGenerator(names, seed)
	for n := 1; n <= headlines; n++ {
		text := g.headline(n)
		for _, symbol := range names.find(wordsOf(text)) {
			c, ok := companies[symbol]
			if !ok {
				c = Company{Name: f.bySymbol[symbol].name, Sector: f.bySymbol[symbol].sector}
			}
			c.mentioned(Mentioned{Headline: text, Score: score(wordsOf(text))})
			companies[symbol] = c
		}
	}
	for symbol, c := range companies {
		s, ok := sectors[c.Sector]
		if !ok {
			s.Companies = map[string]Tally{}
		}
		s.Companies[symbol] = c.tally()
		s.Total = s.Total.changed(Tally{}, c.tally())
		sectors[c.Sector] = s
	}
	return companies, sectors
}

// settled waits until the sectors are as wanted: what companies tell them is on
// its way for a moment.
func (e exchange) settled(t *testing.T, want map[string]Sector) {
	t.Helper()
	require.Eventually(t, func() bool { return len(e.off(t, want)) == 0 }, patience, 5*time.Millisecond)
	require.Equal(t, want, states(t, e.sectors))
}

// off returns the sectors that are not as wanted.
func (e exchange) off(t *testing.T, want map[string]Sector) (names []string) {
	got := states(t, e.sectors)
	for name, s := range want {
		if got[name].Total != s.Total {
			names = append(names, name)
		}
	}
	return names
}

// Only a mention of a known company makes one, with what is known of it.
func TestCompaniesAreThereOnceMentioned(t *testing.T) {
	e := startInMemory(t)
	_, err := entity.Ask[Tally](t.Context(), e.companies.Ref("AAPL"), TellTally{})
	require.ErrorIs(t, err, entity.ErrNotFound)
	for name, want := range map[string]string{"ZZZZ": "companies.csv knows no company ZZZZ", "aapl": "the pod takes names that match"} {
		_, err = entity.Ask[entity.Ack](t.Context(), e.companies.Ref(name), Mentioned{Headline: "h"})
		require.ErrorContains(t, err, want)
	}
	require.Empty(t, states(t, e.companies))
	require.Empty(t, states(t, e.sectors))

	ask[entity.Ack](t, e.companies.Ref("AAPL"), Mentioned{Headline: "h", Score: 2})
	require.Equal(t, map[string]Company{"AAPL": {
		Name: "Apple Inc.", Sector: "Information Technology", Mentions: 1, Positive: 1, Recent: []int{2}, Sentiment: 2, Headline: "h",
	}}, states(t, e.companies))
	_, err = entity.Ask[entity.Ack](t.Context(), e.companies.Ref("AAPL"), Mentioned{Score: 4})
	require.ErrorContains(t, err, "a score is from -3 to 3")
}

// A mention counts once, and the sentiment is that of the last ones.
func TestMentions(t *testing.T) {
	e := startInMemory(t)
	aapl, msft := e.companies.Ref("AAPL"), e.companies.Ref("MSFT")
	for range 3 {
		ask[entity.Ack](t, aapl, entity.WithID("1", Mentioned{Headline: "h", Score: -3}))
	}
	ask[entity.Ack](t, aapl, Mentioned{Headline: "h"})
	require.Equal(t, Tally{Companies: 1, Mentions: 2, Negative: 1, Recent: 2, Score: -3, Sentiment: -1.5}, ask[Tally](t, aapl, TellTally{}))
	for range recentMentions - 1 {
		ask[entity.Ack](t, aapl, Mentioned{Headline: "h", Score: 1})
	}
	want := Tally{Companies: 1, Mentions: 21, Positive: 19, Negative: 1, Recent: 20, Score: 19, Sentiment: 0.95}
	require.Equal(t, want, ask[Tally](t, aapl, TellTally{}))
	ask[entity.Ack](t, msft, Mentioned{Headline: "h", Score: -3})

	sum := want.changed(Tally{}, Tally{Companies: 1, Mentions: 1, Negative: 1, Recent: 1, Score: -3})
	require.InDelta(t, 0.762, sum.Sentiment, 1e-9)
	sector := e.sectors.Ref("Information Technology")
	require.Eventually(t, func() bool {
		got, err := entity.Ask[Tally](t.Context(), sector, TellTally{})
		return err == nil && got == sum
	}, patience, time.Millisecond)
	require.Equal(t, []Ranked{{"AAPL", "Information Technology", 21, 0.95}}, ask[[]Ranked](t, sector, TellTop{N: 1}))
	require.Empty(t, ask[[]Ranked](t, sector, TellTop{N: -1}))
	require.Len(t, ask[[]Ranked](t, sector, TellTop{N: 5}), 2)
}

// undigested takes the digests off companies.
func undigested(companies map[string]Company) map[string]Company {
	for symbol, c := range companies {
		c.Digests, c.Digest = 0, nil
		companies[symbol] = c
	}
	return companies
}

// digested waits until the digests of all companies have all mentions.
func (e exchange) digested(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, c := range states(t, e.companies) {
			if c.Digest == nil || c.Digest.Through < c.Mentions {
				return false
			}
		}
		return true
	}, patience, 20*time.Millisecond)
}

// A company has itself reminded of its digests, also over restarts.
func TestDigests(t *testing.T) {
	store := persisttest.NewMemory()
	e, stop := startWith(t, store, time.Second)
	before := time.Now()
	for range 3 {
		ask[entity.Ack](t, e.companies.Ref("AAPL"), Mentioned{Headline: "h", Score: 1})
	}
	stop()
	store = store.Again()
	e, _ = startWith(t, store, time.Hour) // it is the period of those that are new
	e.digested(t)
	got := states(t, e.companies)["AAPL"]
	require.Equal(t, 3, got.Digest.Through)
	require.False(t, got.Digest.Due.Before(before.Add(time.Second)), "none is early")
	first, digests := got.Digest.Due, got.Digests

	ask[entity.Ack](t, e.companies.Ref("AAPL"), Mentioned{Headline: "h", Score: -1})
	e.digested(t)
	got = states(t, e.companies)["AAPL"]
	require.Equal(t, Digest{Due: got.Digest.Due, Mentions: 1, Through: 4, Sentiment: 0.5}, *got.Digest)
	require.Zero(t, got.Digest.Due.Sub(first)%time.Second)
	require.Equal(t, digests+1, got.Digests)

	ask[entity.Ack](t, e.companies.Ref("BA"), Mentioned{Headline: "h"})
	require.NoError(t, e.companies.Tell(t.Context(), "BA", Summarise{}))
	require.Eventually(t, func() bool { return states(t, e.companies)["BA"].Digests == 1 }, patience, time.Millisecond)
	ask[entity.Ack](t, e.companies.Ref("BA"), Summarise{})
	require.Equal(t, 1, states(t, e.companies)["BA"].Digests, "there is nothing to say")
}

// answers is somebody in a sector's place.
type answers struct {
	actor.Target
	v   any
	err error
}

func (a answers) Post(m actor.Message) error {
	if a.err != nil {
		return a.err
	}
	if a.v != nil {
		m.Reply.Complete(a.v)
	}
	return nil
}

// A ranking puts what the sectors answer together, and says when one has not.
func TestRanking(t *testing.T) {
	e := startInMemory(t)
	refresh := func(want int) Ranking {
		p, err := e.Pods().Pod("rankings")
		require.NoError(t, err)
		ask[entity.Ack](t, p.Ref("now"), Refresh{})
		var v pod.TypedView[Ranking]
		require.Eventually(t, func() bool {
			v, err = (&pod.Handle[Ranking]{Pod: p}).Get(t.Context(), "now")
			return err == nil && (v.State.Answered == want || v.State.Error != "")
		}, patience, time.Millisecond)
		v.State.At = time.Time{}
		return v.State
	}
	require.Equal(t, Ranking{Asked: 1, Top: []Ranked{}, Error: errClosedDesk.Error()}, refresh(1))
	_, err := open(t.Context(), e.System(), newFinder(e.facts), e.facts, e.pods, 1, e.at)
	require.NoError(t, err)
	require.Equal(t, Ranking{Asked: 2, Answered: 2, Complete: true, Top: []Ranked{}}, refresh(2), "no sector is there")

	mentions := map[string]int{}
	for i, c := range e.facts.companies {
		for range i%5 + 1 {
			ask[entity.Ack](t, e.companies.Ref(c.symbol), Mentioned{Headline: "h", Score: i % 2})
			mentions[c.symbol]++
		}
	}
	want := map[string]Sector{}
	for symbol, c := range states(t, e.companies) {
		s := want[c.Sector]
		if s.Companies == nil {
			s.Companies = map[string]Tally{}
		}
		s.Companies[symbol] = c.tally()
		s.Total = s.Total.changed(Tally{}, c.tally())
		want[c.Sector] = s
	}
	e.settled(t, want)
	got := refresh(3)
	require.True(t, got.Complete)
	require.Len(t, got.Top, ranked)
	var symbols []string
	for _, r := range got.Top {
		require.Equal(t, mentions[r.Symbol], r.Mentions)
		require.Equal(t, e.facts.bySymbol[r.Symbol].sector, r.Sector)
		symbols = append(symbols, r.Symbol)
	}
	require.Equal(t, []string{"DIS", "JNJ", "GOOGL", "JPM", "NEE", "NVDA", "PLD", "LIN", "MSFT", "XOM"}[:2], symbols[:2])
	require.IsNonIncreasing(t, mentionsOf(got.Top))

	d := *e.at.Load()
	d.sectors = append([]actor.Target{answers{err: errors.New("down")}}, d.sectors...)
	e.at.Store(&d)
	got2 := refresh(4)
	require.False(t, got2.Complete)
	require.Equal(t, got.Top, got2.Top)
}

// A ranking knows the companies of files before.
func TestRankingOfSeveralFiles(t *testing.T) {
	e := startInMemory(t)
	ask[entity.Ack](t, e.companies.Ref("AAPL"), Mentioned{Headline: "h", Score: 1})
	require.Eventually(t, func() bool { return len(states(t, e.sectors)) == 1 }, patience, time.Millisecond)
	other, err := parseFacts("other.csv", []byte("Symbol,Security,GICS Sector\nA,Alpha,Another\n"))
	require.NoError(t, err)
	_, err = open(t.Context(), e.System(), newFinder(other), other, e.pods, 1, e.at)
	require.NoError(t, err)
	got, err := e.at.Load().rank(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, Reaped{Question: 1, Complete: true, Top: []Ranked{{"AAPL", "Information Technology", 1, 1}}}, got)
}

func mentionsOf(list []Ranked) (n []int) {
	for _, r := range list {
		n = append(n, r.Mentions)
	}
	return n
}

// What goes through the newsroom comes out when its companies have it.
func TestNewsroom(t *testing.T) {
	e := startInMemory(t)
	props, err := newsroom(newFinder(e.facts), e.companies.Ref)
	require.NoError(t, err)
	room, err := e.System().Spawn("room", props)
	require.NoError(t, err)
	for i, c := range []struct {
		text string
		want []string
	}{
		{" Apple  and Boeing agree\n", []string{"AAPL", "BA"}}, {"nobody knows", nil}, {"Apple: Apple", []string{"AAPL"}},
	} {
		d, err := actor.Ask[delivered](t.Context(), room, line{id: string(rune('a' + i)), text: c.text})
		require.NoError(t, err)
		require.Equal(t, len(c.want), d.companies)
	}
	v, err := e.companies.Get(t.Context(), "AAPL")
	require.NoError(t, err)
	require.Equal(t, 2, v.State.Mentions)
	v, err = e.companies.Get(t.Context(), "BA")
	require.NoError(t, err)
	require.Equal(t, "Apple and Boeing agree", v.State.Headline)

	for msg, want := range map[any]string{line{id: "x", text: " \t"}: "stage read: the headline is empty", "text": "stage read: a string is no main.line"} {
		_, err := room.Ask(t.Context(), msg)
		require.ErrorContains(t, err, want)
	}
	long := line{id: string(bytes.Repeat([]byte("x"), 300)), text: "Apple and Boeing"}
	_, err = room.Ask(t.Context(), long)
	require.ErrorContains(t, err, "stage deliver: tell ")
}
