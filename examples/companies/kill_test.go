package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/server"
)

// kills is how often a test kills the example: fewer unless TWINSRV_KILLS says
// how often.
func kills(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("TWINSRV_KILLS")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "TWINSRV_KILLS is the number of kills in each test")
	return n
}

// running is a process of the example.
type running struct {
	cmd    *exec.Cmd
	url    string
	stderr strings.Builder
	ended  chan struct{} // closed when its output has
}

// begin starts the example and waits until it serves.
func begin(t *testing.T, program string, args ...string) *running {
	t.Helper()
	r := &running{cmd: exec.Command(program, append(args, "--listen", "127.0.0.1:0")...), ended: make(chan struct{})}
	r.cmd.Stderr = &r.stderr
	out, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, r.cmd.Start())
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		err := r.cmd.Wait()
		require.FailNow(t, "the example did not start", "%v: %s", err, &r.stderr)
	}
	_, address, found := strings.Cut(lines.Text(), " on http://")
	require.True(t, found, lines.Text())
	r.url = "http://" + address
	go func() {
		defer close(r.ended)
		for lines.Scan() { // it must not wait for a reader
		}
	}()
	return r
}

// kill ends the process as a crash does, and reports whether it was still
// running.
func (r *running) kill(t *testing.T) bool {
	t.Helper()
	if err := r.cmd.Process.Kill(); !errors.Is(err, os.ErrProcessDone) {
		require.NoError(t, err)
	}
	<-r.ended
	err := r.cmd.Wait()
	return err != nil && err.Error() == "signal: killed"
}

// TestTheFeedGoesOnOverKills: the example, as it is run, is killed with SIGKILL
// again and again. It goes on where it stopped, and what it has acknowledged is
// there; in the end everything is counted once.
func TestTheFeedGoesOnOverKills(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "companies")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	data := filepath.Join(t.TempDir(), "data")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	args := []string{"--data", data, "--rate", "2000", "--digest", "1s"}
	seen := 0
	for range kills(t, 10) {
		r := begin(t, program, args...)
		w := web{t, client, r.url}
		armed := false
		for n, ok := w.mentions(); ok; n, ok = w.mentions() {
			require.GreaterOrEqual(t, n, seen, "what was seen is there")
			if !armed && (n > seen || dice.IntN(20) == 0) {
				armed = true
				time.AfterFunc(time.Duration(dice.IntN(300))*time.Millisecond, func() { _ = r.cmd.Process.Kill() })
			}
			seen = n
		}
		require.True(t, r.kill(t), "%s", &r.stderr)
		client.CloseIdleConnections()
	}
	require.NotZero(t, seen)

	through := 0
	look(t, data, func(e exchange) {
		for _, f := range states(t, e.feeds) {
			through = f.Through
		}
	})
	last := through + 500
	out, err = exec.CommandContext(t.Context(), program, "--data", data, "--listen", "127.0.0.1:0", "--rate", "1000000", "--digest", "1s", "--headlines", strconv.Itoa(last), "--exit").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), fmt.Sprintf("behind headline %d\n500 headlines", through))
	look(t, data, func(e exchange) {
		companies, sectors := expected(e.facts, 1, last)
		e.digested(t)
		require.Equal(t, companies, undigested(states(t, e.companies)))
		e.settled(t, sectors)
		t.Logf("%d headlines", last)
	})
}

// look opens the example's data when nobody else has them.
func look(t *testing.T, data string, f func(exchange)) {
	t.Helper()
	store, err := server.OpenStore(t.Context(), "bolt:"+data, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	e, stop := start(t, store)
	f(e)
	stop()
}

// mentions adds up the mentions of all companies; false when the server has
// ended.
func (w web) mentions() (n int, ok bool) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, w.url+"/v1/pods/companies/entities?limit=1000", nil)
	require.NoError(w.t, err)
	res, err := w.client.Do(req)
	if err != nil {
		return 0, false
	}
	defer res.Body.Close()
	var page struct{ Items []struct{ State Company } }
	if err := json.NewDecoder(res.Body).Decode(&page); err != nil || res.StatusCode != http.StatusOK {
		return 0, false
	}
	for _, i := range page.Items {
		n += i.State.Mentions
	}
	return n, true
}
