package pod_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// T16: a failed activation that keeps its view; deletion, passivation, sweep, redefinition.
func TestFailedPhaseFuzz(t *testing.T) {
	forSeeds(t, 200, func(t *testing.T, seed uint64) {
		store := persisttest.NewFaultStore(persisttest.NewMemory())
		w := newWorld(t, seed, store, ledgers(nil), pod.Config{})
		docs, _, _, err := w.pods.Declare(bg, "docs", documentPod(""))
		w.must(err)
		var ps []*actor.Promise
		var log strings.Builder
		post := func(m any) {
			p := w.sys.NewPromise()
			if err := docs.Ref("x").Post(actor.Message{Payload: m, Reply: p}); err != nil {
				p.Fail(err)
			}
			ps = append(ps, p)
		}
		post(entity.Merge{"a": 0})
		for i := range 40 {
			op := w.sys.Uint64() % 9
			fmt.Fprint(&log, op, "(", len(ps), ") ")
			switch op {
			case 0, 1, 2:
				post(entity.Merge{"a": i})
			case 3:
				post(unconditional())
			case 4:
				post(entity.Passivate())
			case 5:
				n, f := int(w.sys.Uint64()%3), persisttest.Fault(1+w.sys.Uint64()%6)
				store.FailReopens(n)
				store.OnCommit(store.Commits()+1, f)
				fmt.Fprint(&log, "f", f, " ")
			case 6:
				m, err := w.sys.Lookup("/user/pods/docs/x")
				if err == nil {
					m.TellSystem(entity.Sweep())
				}
			case 7:
				d := []string{"", "async:100ms"}[w.sys.Uint64()%2]
				_, _, _, err := w.pods.Declare(bg, "docs", documentPod(d))
				log.WriteString(d)
				_ = err
			case 8:
				w.exec.RunFor(time.Duration(w.sys.Uint64()%300) * time.Millisecond)
			}
			for range w.sys.Uint64() % 8 {
				w.exec.Step()
			}
		}
		store.OnCommit(store.Commits()+1, 0)
		w.exec.RunFor(5 * time.Minute)
		store.OnCommit(store.Commits()+1, 0)
		for i, p := range ps {
			require.True(t, p.Done(), "seed %d message %d is never answered: %s", seed, i, log.String())
		}
		_, err = docs.Ask(bg, "x", entity.Merge{"z": 1})
		w.must(err)
		w.exec.RunFor(time.Minute)
		v, err := docs.Get(bg, "x")
		w.must(err)
		j, _ := v.JSON()
		r, err := store.Load(bg, persist.Key{Pod: "docs", Name: "x"})
		w.must(err)
		require.Equal(t, string(r.State), string(j), "seed %d", seed)
		require.Equal(t, r.Revision, v.Revision)
		w.close()
	})
}

// T18: everything at once: failing flushes, deletions, passivation, stops, close.
func TestAsyncFuzz(t *testing.T) {
	for _, stops := range []bool{false, true} {
		t.Run(fmt.Sprint(stops), func(t *testing.T) {
			forSeeds(t, 400, func(t *testing.T, seed uint64) { asyncFuzz(t, seed, stops) })
		})
	}
}

func asyncFuzz(t *testing.T, seed uint64, stops bool) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newWorld(t, seed, store, ledgers(func(d *entity.Type[ledger]) { d.Durability = entity.Async(20 * time.Millisecond) }), pod.Config{IdleAfter: 200 * time.Millisecond, Committer: persist.CommitterConfig{MaxUnits: 3}})
	store.Pause = func(ctx context.Context) error {
		return w.sys.Sleep(ctx, time.Duration(w.sys.Uint64()%40)*time.Millisecond)
	}
	type sent struct {
		what string
		p    *actor.Promise
	}
	var all []sent
	var trace strings.Builder
	for i := range 50 {
		op := w.sys.Uint64() % 10
		fmt.Fprint(&trace, op, " ")
		switch op {
		case 0, 1, 2, 3:
			id := fmt.Sprint(i)
			all = append(all, sent{id, w.send("x", add{id})})
		case 4:
			all = append(all, sent{"delete", w.send("x", unconditional())})
		case 5:
			all = append(all, sent{"passivate", w.send("x", entity.Passivate())})
		case 6, 7:
			faults := []persisttest.Fault{persisttest.FailBefore, persisttest.UnknownApplied, persisttest.UnknownLost}
			store.FailReopens(int(w.sys.Uint64() % 3))
			store.OnCommit(store.Commits()+1, faults[w.sys.Uint64()%3])
		case 8:
			if stops {
				for _, c := range children(w) {
					c.Stop()
				}
			}
		case 9:
			w.exec.RunFor(time.Duration(w.sys.Uint64()%200) * time.Millisecond)
		}
		for range w.sys.Uint64() % 8 {
			w.exec.Step()
		}
	}
	store.OnCommit(store.Commits()+1, 0)
	w.exec.RunFor(5 * time.Minute)
	store.OnCommit(store.Commits()+1, 0)
	for i, s := range all {
		require.True(t, s.p.Done(), "seed %d: %d %s is never answered: %s", seed, i, s.what, trace.String())
	}
	if !stops {
		// The log is what was acknowledged since the last deletion, in order,
		// and maybe what is unknown.
		var want, maybe []string
		unsure := false
		for _, s := range all {
			_, err := w.wait(s.p)
			switch {
			case s.what == "delete" && err == nil:
				want, maybe, unsure = nil, nil, false
			case s.what == "delete" && errors.Is(err, entity.ErrNotFound):
				want = nil
			case s.what == "delete" && !errors.Is(err, persist.ErrUnavailable):
				unsure = true
			case s.what == "delete" || s.what == "passivate":
			case err == nil:
				want = append(want, s.what)
			default:
				maybe = append(maybe, s.what)
			}
		}
		var log []string
		if v, err := w.h.Get(bg, "x"); err == nil {
			log = v.State.Log
		} else {
			require.ErrorIs(t, err, entity.ErrNotFound)
		}
		if !unsure {
			require.Equal(t, append([]string(nil), want...), append([]string(nil), only(log, want)...), "seed %d: %v", seed, log)
			for _, id := range log {
				require.True(t, slices.Contains(want, id) || slices.Contains(maybe, id), "seed %d: %s is there again", seed, id)
			}
		}
	}
	_, err := w.ask("x", add{"last"})
	w.must(err)
	w.exec.RunFor(time.Minute)
	n := store.Commits()
	w.exec.RunFor(time.Minute)
	require.Equal(t, n, store.Commits(), "seed %d: writes for ever", seed)
	v, err := w.h.Get(bg, "x")
	w.must(err)
	w.close()
	r, err := store.Load(bg, xKey)
	w.must(err)
	require.Equal(t, v.Revision, r.Revision, "seed %d", seed)
}
