package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/server"
)

// smallDisk is a folder on a disk of its own, and fill leaves no room on that.
func smallDisk(t *testing.T) (dir string, fill, free func()) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skip("a small disk cannot be mounted here:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	n := 0
	fill = func() {
		n++
		f, err := os.Create(filepath.Join(dir, fmt.Sprint("ballast-", n)))
		require.NoError(t, err)
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.NoError(t, f.Close())
	}
	free = func() {
		all, err := filepath.Glob(filepath.Join(dir, "ballast-*"))
		require.NoError(t, err)
		for _, f := range all {
			require.NoError(t, os.Remove(f))
		}
	}
	return dir, fill, free
}

// TestFullDisk: a server on a full disk starts, reads, refuses and says why, and
// goes on by itself; its store can be checked and backed up to another disk.
func TestFullDisk(t *testing.T) {
	for _, end := range []string{"stopped", "killed"} {
		t.Run(end, func(t *testing.T) { fullDisk(t, end == "killed") })
	}
}

func fullDisk(t *testing.T, killed bool) {
	disk, fill, free := smallDisk(t)
	data := filepath.Join(disk, "data")
	p := start(t, data)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	large := `{"text":"` + strings.Repeat("x", 500_000) + `"}`
	written := 0
	for ; written < 4; written++ {
		p.must(201, "PUT", entityOf(written), large)
	}
	fill()
	for status := 0; status != 503; written++ {
		var err error
		status, _, err = p.ask("PUT", entityOf(written), large)
		require.NoError(t, err)
		require.Contains(t, []int{201, 503}, status)
	}
	written--
	acknowledged := answers(p)
	requireFull(p, written, large)
	if killed {
		p.kill()
	} else {
		p.terminate()
	}
	fill()

	require.Contains(t, succeeds(t, "store", "check", "--data", data), "everything can be read")
	backup := filepath.Join(t.TempDir(), "backup")
	succeeds(t, "store", "backup", backup, "--data", data)
	restored := filepath.Join(t.TempDir(), "data")
	succeeds(t, "store", "restore", backup, "--data", restored)
	r := start(t, restored)
	require.Equal(t, acknowledged, answers(r))
	r.kill()

	if s, err := server.Open(t.Context(), server.Config{Data: data, NoCommitLog: true}); err == nil { // all was folded already
		require.NoError(t, s.Close(t.Context()))
	} else {
		require.ErrorContains(t, err, "start without --no-commit-log")
		require.ErrorIs(t, err, persist.ErrNoRoom)
	}

	p = start(t, data)
	require.Equal(t, acknowledged, answers(p))
	status := 0
	for i := written; status != 503; i++ { // what the log has may have been folded where there was room
		var err error
		status, _, err = p.ask("PUT", entityOf(i), large)
		require.NoError(t, err)
		require.Contains(t, []int{201, 503}, status)
		require.Less(t, i, written+50)
	}
	requireFull(p, written+50, large)
	acknowledged = answers(p)
	free()
	require.Eventually(t, func() bool { status, _, _ := p.ask("GET", "/readyz", ""); return status == 200 }, patience, tick)
	require.Equal(t, acknowledged, answers(p))
	p.must(201, "PUT", entityOf(written+50), large)
	acknowledged = answers(p)
	p.kill()
	require.Equal(t, acknowledged, answers(start(t, data)))
}

// requireFull requires that a server says that its disk is full, and reads.
func requireFull(p *process, absent int, body string) {
	p.t.Helper()
	for range 20 {
		require.Contains(p.t, p.must(503, "PUT", entityOf(absent), body), "disk that the store is on is full")
		require.Contains(p.t, p.must(503, "GET", "/readyz", ""), "full")
		p.must(200, "GET", entityOf(0), "")
	}
	require.Contains(p.t, p.must(200, "GET", "/metrics", ""), "twinsrv_store_up 0")
	require.Less(p.t, strings.Count(p.stderr.String(), "\n"), 60)
}
