package killtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const writers = 24

// withoutLog has a server write to bolt's file alone.
const withoutLog = "--no-commit-log"

// starts are the flags that servers get, one after the other, by what is tried.
var starts = map[string]func(rng *rand.Rand) []string{
	"log":   func(*rand.Rand) []string { return nil },
	"alone": func(*rand.Rand) []string { return []string{withoutLog} },
	"switched": func(rng *rand.Rand) []string {
		if rng.IntN(2) == 0 {
			return []string{withoutLog}
		}
		return nil
	},
}

// TestKillLosesNothing: after kill -9 at a random moment and a restart, every
// acknowledged request is in the state and no other is half there: with the
// commit log, without it, and when it is switched on and off.
func TestKillLosesNothing(t *testing.T) {
	binary := build(t, "")
	for name, usual := range map[string]int{"log": 20, "alone": 10, "switched": 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := rounds(t, usual)
			done, acks, lost := kills(t, binary, want, starts[name])
			require.NoError(t, lost)
			require.Equal(t, want, done)
			t.Logf("%d acknowledged requests over %d kills, none lost", acks, done)
		})
	}
}

// TestKillFindsEarlyAcknowledgements: the same finds a committer that
// acknowledges before it has committed. With the log a commit takes so little
// time that hardly a kill falls into it, so it is given some.
func TestKillFindsEarlyAcknowledgements(t *testing.T) {
	for name, pause := range map[string]string{"alone": "0", "log": "10 * time.Millisecond"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binary := build(t, "persist/committer.go", [2]string{"\t\t\tc.commit(group)\n", strings.Replace(early, "PAUSE", pause, 1)})
			done, _, lost := kills(t, binary, 40, starts[name])
			require.ErrorContains(t, lost, "acknowledged", "40 kills found nothing")
			t.Logf("found at kill %d: %v", done, lost)
		})
	}
}

const early = `
			early := true
			outcomes := make([]Outcome, len(group))
			units := make([]Unit, len(group))
			for i, p := range group {
				if p.unit.Life == 0 {
					p.unit.Life = p.lane.life
				}
				early = early && p.unit.Expect > 0 && p.unit.Life > 0 && !p.unit.Delete
				units[i], outcomes[i] = p.unit, Outcome{Life: p.unit.Life, Position: 1}
			}
			if early {
				c.settle(group, outcomes, nil)
				c.deliver(group)
				time.Sleep(PAUSE)
				_, _ = c.store.Commit(c.ctx, units)
				continue
			}
			c.commit(group)
`

// kills runs writers against a server that is killed and started again, until
// something is lost.
func kills(t *testing.T, binary string, rounds int, flags func(*rand.Rand) []string) (done, acks int, lost error) {
	t.Helper()
	data := t.TempDir()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	transport := &http.Transport{MaxIdleConnsPerHost: writers}
	defer transport.CloseIdleConnections()
	var all []*writer
	for i := range writers {
		all = append(all, &writer{name: fmt.Sprintf("e%d", i), rng: rand.New(rand.NewPCG(seed, uint64(i+1))), client: &http.Client{Transport: transport}})
	}
	p := start(t, binary, data, flags(rng)...)
	defer func() { p.kill(t) }()
	declare(t, p, transport)
	for done = 1; done <= rounds; done++ {
		before := total(all)
		failed := writeUntilKilled(t, p, all, time.Duration(50+rng.IntN(300))*time.Millisecond)
		transport.CloseIdleConnections()
		p = start(t, binary, data, flags(rng)...)
		require.NoError(t, failed)
		var wrong []error
		for _, w := range all {
			wrong = append(wrong, w.check(p))
		}
		acks = total(all)
		killed.Add(1)
		t.Logf("kill %d: %d acknowledged", done, acks-before)
		if lost = errors.Join(wrong...); lost != nil {
			return done, acks, lost
		}
	}
	return done - 1, acks, nil
}

func declare(t *testing.T, p *process, transport *http.Transport) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPut, p.url+"/v1/pods/docs", strings.NewReader(`{"type":"document"}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	res, err := (&http.Client{Transport: transport}).Do(req)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusCreated, res.StatusCode)
}

func writeUntilKilled(t *testing.T, p *process, all []*writer, after time.Duration) error {
	t.Helper()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, w := range all {
		wg.Go(func() { errs[i] = w.run(p) })
	}
	<-time.After(after)
	p.kill(t)
	wg.Wait()
	return errors.Join(errs...)
}

func total(all []*writer) (n int) {
	for _, w := range all {
		n += w.acks
	}
	return n
}
