package pod_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// A command of the crash test, with what its sender was told.
type command struct {
	id      string
	delete  bool
	fails   bool
	promise *actor.Promise
	done    bool
	err     error
	ack     entity.Ack
}

// TestCrashKeepsWhatWasAcknowledged: random commands to a few entities, a power
// cut at a random step, a restart on what was synced; several times over. Each
// entity then holds the acknowledged commands in order, and of the others only
// whole ones from the end.
func TestCrashKeepsWhatWasAcknowledged(t *testing.T) {
	forSeeds(t, 1000, func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		store := persisttest.NewCrashStore()
		durable := map[string][]string{} // by name: the log after the last restart
		lives := map[string]map[uint64]bool{}
		for round := range 4 {
			w := newWorld(t, seed*4+uint64(round), store, ledgers(nil), pod.Config{IdleAfter: 20 * time.Millisecond})
			for name, want := range durable {
				if want != nil {
					require.Equal(t, want, w.log(name), "recovered")
				}
			}
			sent := sendCommands(w, rng, round)
			w.exec.RunFor(time.Duration(rng.IntN(30)) * time.Millisecond)
			for range rng.IntN(200) {
				w.exec.Step()
			}
			for _, cs := range sent {
				for _, c := range cs {
					c.done = c.promise.Done()
				}
			}
			collect(w, sent)
			store = store.Crash(rng.Uint64())
			w.kill()
			durable = settleCrash(t, seed, store, durable, sent, lives)
		}
	})
}

func sendCommands(w *world, rng *rand.Rand, round int) map[string][]*command {
	sent := map[string][]*command{}
	for i := range 30 {
		name := fmt.Sprint("e", rng.IntN(3))
		c := &command{id: fmt.Sprintf("%d.%d", round, i)}
		var msg any = add{c.id}
		switch rng.IntN(8) {
		case 0:
			msg, c.delete = entity.Delete(entity.Condition{}), true
		case 1:
			msg, c.fails = spoil{c.id}, true
		case 2:
			w.exec.RunFor(time.Duration(rng.IntN(10)) * time.Millisecond)
		case 3:
			w.exec.RunFor(time.Duration(rng.IntN(100)) * time.Millisecond)
		}
		c.promise = w.send(name, msg)
		sent[name] = append(sent[name], c)
	}
	return sent
}

// collect notes the answers that had come before the crash.
func collect(w *world, sent map[string][]*command) {
	for _, cs := range sent {
		for _, c := range cs {
			if !c.done {
				continue
			}
			var v any
			if v, c.err = w.wait(c.promise); c.err == nil {
				c.ack = v.(entity.Ack)
			}
		}
	}
}

// settleCrash reads what the store holds after the crash and checks it against
// every state that the acknowledged commands allow.
func settleCrash(t *testing.T, seed uint64, store *persisttest.CrashStore, before map[string][]string, sent map[string][]*command, lives map[string]map[uint64]bool) map[string][]string {
	t.Helper()
	w := newWorld(t, seed, store, ledgers(nil), pod.Config{})
	defer w.kill()
	after := map[string][]string{}
	for name := range before {
		after[name] = before[name]
	}
	for name, cs := range sent {
		var got []string
		if v, err := w.h.Get(t.Context(), name); err == nil {
			got = v.State.Log
		} else {
			require.ErrorIs(t, err, entity.ErrNotFound)
		}
		require.True(t, allowed(before[name], got, cs), "seed %d: %s held %v, was sent %s and holds %v", seed, name, before[name], describe(cs), got)
		after[name] = got
	}
	_ = lives
	return after
}

// allowed reports whether a log is the fold of all acknowledged commands and of
// some prefix of those that were not answered.
func allowed(log, got []string, cs []*command) bool {
	last := -1
	for i, c := range cs {
		if c.done && c.err == nil {
			last = i
		}
	}
	state := slices.Clone(log)
	if last == -1 && slices.Equal(state, got) {
		return true
	}
	for i, c := range cs {
		switch {
		case c.fails || c.done && c.err != nil:
		case c.delete:
			state = nil
		default:
			state = append(state, c.id)
		}
		if i >= last && slices.Equal(state, got) {
			return true
		}
	}
	return false
}

func describe(cs []*command) string {
	s := ""
	for _, c := range cs {
		s += fmt.Sprintf(" [%s delete=%t fails=%t done=%t err=%v]", c.id, c.delete, c.fails, c.done, c.err)
	}
	return s
}
