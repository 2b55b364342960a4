package killtest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	twinWriters    = 10
	twinsPerWriter = 4
)

// TestWatchersOverKills: clients watch while changes pass, each of them cut off
// at random and going on, with two kills of the server between. Every one sees
// every change of its scope once, in order, or a gap that covers it. There are
// TWINSRV_WATCHERS of them (100, with 10,000 changes), without it a few.
func TestWatchersOverKills(t *testing.T) {
	binary := build(t, "")
	for name, flags := range map[string][]string{"kept": nil, "trimmed": {"--keep-changes", "200"}} {
		t.Run(name, func(t *testing.T) {
			n := watchers(t)
			run := newWatching(t, binary, n, 100*n, flags)
			run.all(t)
			run.check(t)
		})
	}
}

// watchers is how many clients there are; each means a hundred changes.
func watchers(t *testing.T) int {
	t.Helper()
	text := os.Getenv("TWINSRV_WATCHERS")
	if text == "" {
		return 16 / raceDivisor
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "TWINSRV_WATCHERS is the number of clients")
	return n
}

// watching is one run.
type watching struct {
	binary, data string
	flags        []string
	changes      int
	server       atomic.Pointer[process]
	killing      sync.RWMutex // held by whoever needs the server as it is
	client       *http.Client
	passed       atomic.Int64 // changes that were acknowledged

	writers  []*twinWriter
	watchers []*watcher
}

// acked is a change that was acknowledged.
type acked struct {
	pod, name string
	etag      string // of the state it led to; of a deletion, of the state before
	n         int
	deleted   bool
}

// twinWriter changes entities of its own.
type twinWriter struct {
	run   *watching
	rng   *rand.Rand
	twins [][2]string // pod and name
	n     int
	etags map[[2]string]string
	acked []acked
	errs  []error
}

func newWatching(t *testing.T, binary string, clients, changes int, flags []string) *watching {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	transport := &http.Transport{MaxIdleConnsPerHost: clients + twinWriters}
	t.Cleanup(transport.CloseIdleConnections)
	r := &watching{binary: binary, data: t.TempDir(), flags: flags, changes: changes, client: &http.Client{Transport: transport}}
	r.server.Store(start(t, binary, r.data, flags...))
	for _, pod := range []string{"rooms", "halls"} {
		_, code, err := r.do(http.MethodPut, "/v1/pods/"+pod, `{"type":"document"}`)
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, code)
	}
	for i := range twinWriters {
		w := &twinWriter{run: r, rng: rand.New(rand.NewPCG(seed, uint64(i))), n: i, etags: map[[2]string]string{}}
		for j := range twinsPerWriter {
			w.twins = append(w.twins, [2]string{[]string{"rooms", "halls"}[j%2], fmt.Sprintf("t%d-%d", i, j)})
		}
		r.writers = append(r.writers, w)
	}
	for i := range clients {
		w := &watcher{
			rng: rand.New(rand.NewPCG(seed, uint64(1000+i))), client: r.client, server: &r.server, cuts: map[string]int{},
			passed: &r.passed, most: int64(changes),
		}
		one := r.writers[i%twinWriters].twins[i%twinsPerWriter]
		w.scope = []scope{{}, {pod: "rooms"}, {odd: true}, {pod: one[0], name: one[1]}, {pod: "halls", odd: true}, {pod: one[0], name: one[1], odd: true}}[i%6]
		if i%4 != 3 {
			w.last, w.known = "0", true // from the beginning; the others from when they come
		}
		if i%8 == 5 {
			w.away = w.most * 9 / 10
		}
		for _, tw := range r.writers {
			for _, twin := range tw.twins {
				if w.scope.has(twin[0], twin[1]) {
					w.lasts++
				}
			}
		}
		r.watchers = append(r.watchers, w)
	}
	return r
}

// all runs writers and watchers to their end, and kills the server twice
// between.
func (r *watching) all(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var writing, watching sync.WaitGroup
	for _, w := range r.watchers {
		watching.Go(func() { w.run(ctx) })
	}
	for _, w := range r.writers {
		writing.Go(func() { w.work(r.changes / twinWriters) })
	}
	for kill := range int64(2) {
		require.Eventually(t, func() bool { return r.passed.Load() > (kill+1)*int64(r.changes)/3 }, 3*time.Minute, time.Millisecond)
		r.server.Load().kill(t)
		r.killing.Lock()
		r.server.Store(start(t, r.binary, r.data, r.flags...))
		r.killing.Unlock()
		killed.Add(1)
	}
	writing.Wait()
	for _, w := range r.writers { // one after the other, so that the last one is known
		w.ends()
		require.Empty(t, w.errs)
	}
	watching.Wait()
	r.server.Load().kill(t)
	for i, w := range r.watchers {
		require.Empty(t, w.errs, "watcher %d of %+v", i, w.scope)
	}
}

// do makes a request and returns the entity tag of its answer.
func (r *watching) do(method, path, body string) (etag string, code int, err error) {
	req, err := http.NewRequest(method, r.server.Load().url+path, strings.NewReader(body))
	if err != nil {
		return "", 0, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := r.client.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer res.Body.Close()
	if _, err = io.ReadAll(res.Body); err != nil {
		return "", 0, err
	}
	return strings.Trim(res.Header.Get("ETag"), `"`), res.StatusCode, nil
}

// work makes changes until so many were acknowledged.
func (w *twinWriter) work(changes int) {
	for len(w.acked) < changes && len(w.errs) == 0 {
		w.change(w.twins[w.rng.IntN(len(w.twins))], w.rng.IntN(20) == 0, false)
	}
}

// ends makes the last change of each entity, which every watcher sees.
func (w *twinWriter) ends() {
	for _, twin := range w.twins {
		for before := len(w.acked); len(w.acked) == before && len(w.errs) == 0; {
			w.change(twin, false, true)
		}
	}
}

// change makes one request. It notes nothing when there is no answer.
func (w *twinWriter) change(twin [2]string, deletes, last bool) {
	path := "/v1/pods/" + twin[0] + "/entities/" + twin[1]
	w.n += twinWriters
	a := acked{pod: twin[0], name: twin[1], n: w.n}
	method, body := http.MethodPut, fmt.Sprintf(`{"n":%d,"odd":%t,"last":%t}`, w.n, w.rng.IntN(2) == 0 || last, last)
	if deletes {
		if w.etags[twin] == "" {
			return
		}
		a.deleted, a.etag, method, body = true, w.etags[twin], http.MethodDelete, ""
	} else {
		path += "/state"
	}
	etag, code, err := w.run.do(method, path, body)
	switch {
	case err != nil:
		w.etags[twin] = "" // unknown
		w.run.killing.RLock()
		defer w.run.killing.RUnlock()
		return
	case code == http.StatusNotFound && deletes: // by a request without an answer
		return
	case code >= 300:
		w.errs = append(w.errs, fmt.Errorf("%s %s: %d", method, path, code))
		return
	}
	if !deletes {
		a.etag = etag
	}
	w.etags[twin] = ""
	if !deletes {
		w.etags[twin] = etag
	}
	w.acked = append(w.acked, a)
	w.run.passed.Add(1)
}

// check compares what the watchers saw with each other and with what was
// acknowledged.
func (r *watching) check(t *testing.T) {
	t.Helper()
	truth := r.truth(t)
	r.checkAcked(t, truth)
	seen, gaps, unsure, connections := 0, 0, 0, 0
	cuts := map[string]int{}
	for i, w := range r.watchers {
		require.NoError(t, w.check(truth), "watcher %d of %+v, from %d", i, w.scope, w.start)
		seen, gaps, connections = seen+len(w.events), gaps+len(w.gaps), connections+w.streams
		for _, e := range w.events {
			if e.Unsure {
				unsure++
			}
		}
		for reason, n := range w.cuts {
			cuts[reason] += n
		}
	}
	t.Logf("%d watchers, %d changes (%d acknowledged), 2 kills: %d events in %d streams, %d of them unsure, %d gaps, cuts %v",
		len(r.watchers), len(truth), r.passed.Load(), seen, connections, unsure, gaps, cuts)
	if r.flags == nil {
		require.Zero(t, gaps+unsure, "everything is kept")
	}
	require.True(t, r.flags == nil || gaps > 0 || r.changes < 1500, "nothing was dropped before a watcher came to it")
	require.Greater(t, connections, 3*len(r.watchers))
}

// truth is what became durable, by what all watchers without a filter saw: they
// must not contradict each other.
func (r *watching) truth(t *testing.T) []told {
	t.Helper()
	at := map[uint64]told{}
	for _, w := range r.watchers {
		for _, e := range w.events {
			if w.scope.odd {
				continue
			}
			before, is := at[e.Position]
			require.True(t, !is || same(before, e), "%+v and %+v", before, e)
			at[e.Position] = e
		}
	}
	return slices.SortedFunc(maps.Values(at), func(a, b told) int { return cmp.Compare(a.Position, b.Position) })
}

func same(a, b told) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// checkAcked finds every acknowledged change in the truth, but for what lies in
// gaps of all that could have seen it.
func (r *watching) checkAcked(t *testing.T, truth []told) {
	t.Helper()
	key := func(pod, name, etag string, deleted bool) string {
		return fmt.Sprint(pod, "/", name, " ", etag, deleted)
	}
	seen := map[string]int{}
	for _, e := range truth {
		if e.kind == "deleted" {
			seen[key(e.Pod, e.Name, fmt.Sprintf("%d-%d", e.Life, e.Revision-1), true)] = -1
			continue
		}
		seen[key(e.Pod, e.Name, fmt.Sprintf("%d-%d", e.Life, e.Revision), false)] = e.State.N
	}
	missing := 0
	for _, w := range r.writers {
		for _, a := range w.acked {
			n, is := seen[key(a.pod, a.name, a.etag, a.deleted)]
			switch {
			case !is:
				missing++
			case !a.deleted:
				require.Equal(t, a.n, n, "%+v", a)
			}
		}
	}
	if r.flags == nil {
		require.Zero(t, missing, "acknowledged changes that no watcher saw")
	}
	require.Less(t, missing, int(r.passed.Load())/2)
}

// check says what is wrong with what a watcher saw.
func (w *watcher) check(truth []told) error {
	in := func(position uint64) bool {
		return slices.ContainsFunc(w.gaps, func(g told) bool { return position > g.From && position <= g.To })
	}
	last := uint64(0)
	for _, e := range w.events {
		if e.Position <= last || in(e.Position) {
			return fmt.Errorf("%+v behind position %d, or in a gap", e, last)
		}
		last = e.Position
	}
	before := map[[2]string]told{} // by entity, of the same life
	events := w.events
	for _, e := range truth {
		id := [2]string{e.Pod, e.Name}
		prior, known := before[id]
		known = known && prior.Life == e.Life
		before[id] = e
		if !w.scope.has(e.Pod, e.Name) || e.Position <= w.start || in(e.Position) {
			continue
		}
		kind, maybe := w.expected(e, prior, known)
		shown := len(events) > 0 && events[0].Position == e.Position
		switch {
		case !shown && kind != "" && !maybe:
			return fmt.Errorf("%+v was not seen as %q", e, kind)
		case !shown:
			continue
		case events[0].kind != kind && !maybe && !events[0].Unsure:
			return fmt.Errorf("%+v was seen as %q, not %q", e, events[0].kind, kind)
		}
		e.kind, e.Unsure = events[0].kind, events[0].Unsure
		if !same(e, events[0]) {
			return fmt.Errorf("%+v was seen as %+v", e, events[0])
		}
		events = events[1:]
	}
	if len(events) > 0 {
		return fmt.Errorf("%d events that nobody else saw, first %+v", len(events), events[0])
	}
	return nil
}

// expected is how a change is seen; maybe, when what was before it is not known.
func (w *watcher) expected(e, prior told, known bool) (kind string, maybe bool) {
	switch {
	case !w.scope.odd || e.State != nil && e.State.Odd:
		return e.kind, false
	case !known && e.Revision == 1, known && (prior.State == nil || !prior.State.Odd) && prior.Revision+1 == e.Revision:
		return "", false
	case !known || prior.Revision+1 != e.Revision:
		return "left", true
	case e.kind == "deleted":
		return "deleted", false
	}
	return "left", false
}
