package server_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	tick       = 5 * time.Millisecond
	shortDrain = 200 * time.Millisecond
)

// needStrace skips a test without strace, or fails it where strace is required.
func needStrace(t *testing.T, why string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("TWINSRV_REQUIRE"), ","), "strace") {
		t.Fatal("needs strace: " + why)
	}
	t.Skip("needs strace: " + why)
}

// spoilSyncs attaches strace to a running server, so that its syncs fail as
// inject says, and returns what detaches it.
func spoilSyncs(t *testing.T, p *process, inject string) (detach func()) {
	t.Helper()
	path, err := exec.LookPath("strace")
	if err != nil {
		needStrace(t, "it is not installed")
	}
	var said output
	cmd := exec.Command(path, "-f", "-p", fmt.Sprint(p.cmd.Process.Pid), "-o", "/dev/null", "-e", "trace=fdatasync", "-e", "inject=fdatasync:"+inject)
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	detach = func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		select {
		case err := <-ended:
			ended <- err
		case <-time.After(patience):
			t.Errorf("strace does not detach: %s", said.String())
			_ = cmd.Process.Kill()
		}
	}
	t.Cleanup(detach)
	require.Eventually(t, func() bool {
		select {
		case err := <-ended:
			ended <- err
			return true
		default:
			return strings.Contains(said.String(), "attached")
		}
	}, patience, tick)
	select {
	case err := <-ended:
		ended <- err
		needStrace(t, "it may not attach: "+said.String())
	default:
	}
	return detach
}

// While the disk refuses to sync, callers are told so; when it works again the
// service goes on by itself, and nothing that was acknowledged is lost: with the
// commit log, whose syncs they are, and without.
func TestFailingSyncs(t *testing.T) {
	for name, inject := range map[string]string{"each": "error=EIO", "later": "error=EIO:when=5+"} {
		t.Run(name, func(t *testing.T) { failingSyncs(t, inject) })
		t.Run(name+" without log", func(t *testing.T) { failingSyncs(t, inject, "--no-commit-log") })
	}
}

func failingSyncs(t *testing.T, inject string, flags ...string) {
	data := t.TempDir()
	flags = append(flags, "--data", data)
	p := startWith(t, flags...)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	w := write(p, 4)
	require.Eventually(t, func() bool { return w.count(200, 201) > 50 }, patience, tick)
	detach := spoilSyncs(t, p, inject)
	require.Eventually(t, func() bool { return w.count(503) > 100 }, patience, tick, "callers must get 503")
	require.Positive(t, w.count(503, 504))
	// strace counts each thread's calls, so with "later" the store may come
	// back for a moment on a thread that has not synced much yet.
	require.Eventually(t, func() bool { status, _, err := p.ask("GET", "/healthz", ""); return err == nil && status == 503 }, patience, tick)
	detach()
	before := w.count(200, 201)
	require.Eventually(t, func() bool { return w.count(200, 201) > before+50 }, patience, tick, "service must resume: %s", p.stderr.String())
	p.must(200, "GET", "/healthz", "")
	w.end()
	require.Equal(t, w.count(200, 201, 503, 504), w.count(0, 200, 201, 404, 409, 412, 422, 429, 500, 502, 503, 504), "%v", w.statuses)
	w.check(t, p)
	p.kill()
	p = startWith(t, flags...)
	w.check(t, p)
	p.terminate()
}
