package server_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A json store of which a file is missing is refused with the file's name, and
// opened as it is on demand.
func TestMissingFile(t *testing.T) {
	dir := t.TempDir()
	at := "json:" + filepath.Join(dir, "twins")
	p := startWith(t, "--store", at)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	p.must(201, "PUT", entityOf(0), `{"n":0}`)
	p.must(201, "PUT", entityOf(1), `{"n":1}`)
	p.terminate()
	require.NoError(t, os.Remove(filepath.Join(dir, "twins", "pods", "docs", "w0.json")))
	saved := "json:" + filepath.Join(dir, "saved")
	for _, args := range [][]string{
		{"store", "check", "--store", at}, {"store", "copy", "--skip-unreadable", at, saved}, {"--store", at, "--listen", "127.0.0.1:0"},
	} {
		said := fails(t, args...)
		require.Contains(t, said, "missing: w0.json")
		require.Contains(t, said, "--ignore-missing")
	}
	require.Contains(t, succeeds(t, "store", "check", "--store", at, "--ignore-missing"), "everything can be read")
	require.Contains(t, succeeds(t, "store", "copy", "--ignore-missing", at, saved), "verified")
	for store, flag := range map[string]string{saved: "--commit-log", at: "--ignore-missing"} {
		p = startWith(t, "--store", store, flag)
		p.must(404, "GET", entityOf(0), "")
		p.must(200, "GET", entityOf(1), "")
		p.must(200, "PUT", entityOf(1), `{"n":2}`)
		p.terminate()
	}
	succeeds(t, "store", "check", "--store", at) // what was written has made it so
}
