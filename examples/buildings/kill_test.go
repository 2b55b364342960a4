package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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

// TestKills kills the example, as it is run, with SIGKILL.
func TestKills(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "buildings")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Run("roll-ups are exact", func(t *testing.T) {
		t.Parallel()
		rollUpsAreExact(t, program, kills(t, 12))
	})
	t.Run("the simulated day goes on", func(t *testing.T) {
		t.Parallel()
		theDayGoesOn(t, program, kills(t, 6))
	})
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

// rollUpsAreExact feeds rooms over HTTP. A message that had no answer is sent
// again, with the same id, once the example runs again. In the end rooms, floors
// and buildings are exactly what the answers say.
func rollUpsAreExact(t *testing.T, program string, kills int) {
	metadata, _ := sampleOnDisk(t)
	args := []string{"--data", filepath.Join(t.TempDir(), "data"), "--metadata", metadata}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	feeders := newFeeders(client, seed)
	for range kills {
		r := begin(t, program, args...)
		settled(t, r.url, feeders[0])
		stop := feedAll(t, r.url, feeders)
		<-time.After(time.Duration(20+rng.IntN(200)) * time.Millisecond)
		require.True(t, r.kill(t), "%s", &r.stderr)
		client.CloseIdleConnections()
		stop()
	}

	r := begin(t, program, args...)
	defer r.kill(t)
	defer client.CloseIdleConnections()
	rooms, floors, buildings := map[string]Room{}, map[string]Floor{}, map[string]Building{}
	answers := 0
	for _, f := range feeders {
		require.NoError(t, f.finish(r.url))
		f.fold(rooms, floors, buildings)
		answers += f.answers
	}
	t.Logf("%d answers over %d kills", answers, kills)
	got := settled(t, r.url, feeders[0])
	for name, want := range buildings {
		require.Equal(t, want.Total, got.buildings[name].Total, name)
		require.Equal(t, want.Floors, got.buildings[name].Floors, name)
	}
	require.Equal(t, floors, got.floors)
	require.Equal(t, rooms, got.rooms)
}

// found is what the example has.
type found struct {
	rooms     map[string]Room
	floors    map[string]Floor
	buildings map[string]Building
}

// settled waits until floors and buildings are what their rooms come to, though
// nothing is sent that could put them right.
func settled(t *testing.T, url string, f *feeder) (got found) {
	t.Helper()
	wrong := ""
	fits := assert.Eventually(t, func() bool {
		got = found{list[Room](t, f, url, "rooms"), list[Floor](t, f, url, "floors"), list[Building](t, f, url, "buildings")}
		wrong = got.wrong()
		return wrong == ""
	}, 20*time.Second, 5*time.Millisecond)
	require.True(t, fits, wrong)
	return got
}

// wrong says what does not fit. A room that is closed is not on its floor.
func (f found) wrong() string {
	for name, r := range f.rooms {
		on, is := f.floors[r.Floor].Rooms[name]
		if is && on != r.summary() || !is && r != (Room{Floor: r.Floor}) {
			return fmt.Sprintf("room %s comes to %+v, its floor has %+v", name, r.summary(), on)
		}
	}
	for name, floor := range f.floors {
		if in := f.buildings[floor.Building].Floors[name]; in != floor.Total {
			return fmt.Sprintf("floor %s comes to %+v, its building has %+v", name, floor.Total, in)
		}
	}
	return ""
}

// feedAll has all feeders feed until the example does not answer any more.
func feedAll(t *testing.T, url string, feeders []*feeder) (stop func()) {
	t.Helper()
	errs := make([]error, len(feeders))
	var feeding sync.WaitGroup
	for i, f := range feeders {
		feeding.Go(func() { errs[i] = f.run(url) })
	}
	return func() {
		t.Helper()
		feeding.Wait()
		require.NoError(t, errors.Join(errs...))
	}
}

// theDayGoesOn: a simulated day that is interrupted again and again comes to
// what one comes to that is not.
func theDayGoesOn(t *testing.T, program string, kills int) {
	data := filepath.Join(t.TempDir(), "data")
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	killed := 0
	for range kills {
		r := begin(t, program, "--data", data)
		<-time.After(time.Duration(20+rng.IntN(250)) * time.Millisecond)
		require.True(t, r.kill(t), "%s", &r.stderr)
		killed++
	}
	t.Logf("%d kills", killed)
	require.Equal(t, aWholeDay(t, program, filepath.Join(t.TempDir(), "whole")), aWholeDay(t, program, data))
}

// aWholeDay has the example simulate its day to the end, and returns what there
// is then.
func aWholeDay(t *testing.T, program, data string) map[string]any {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, "--data", data, "--listen", "127.0.0.1:0", "--exit").CombinedOutput()
	require.NoError(t, err, "%s", out)
	s, err := server.Open(t.Context(), server.Config{Data: data, Definitions: definitions})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close(context.Background())) }()
	h, err := findPods(s.Pods())
	require.NoError(t, err)
	return everything(t, h)
}

// everything returns the states of all entities, by pod and name.
func everything(t *testing.T, h pods) map[string]any {
	t.Helper()
	all := map[string]any{}
	addStates(t, all, h.buildings)
	addStates(t, all, h.floors)
	addStates(t, all, h.rooms)
	return all
}
