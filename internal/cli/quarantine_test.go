package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What cannot be read is left out, told, and makes the whole a part.
func TestUnreadableEntities(t *testing.T) {
	t.Parallel()
	w := serve(t)
	w.must("import", "ndjson", writeFile(t, `{"pod":"docs","definition":{"type":"document"}}`))
	w.must("send", "docs", "bad one", "merge", "text=rust-eats-this")
	w.must("send", "docs", "whole", "merge", "text=fine")
	w.mu.Lock()
	cmd := w.server
	w.server, w.at = nil, "127.0.0.1:1"
	w.mu.Unlock()
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), w.stderr.String())
	path := filepath.Join(w.args[4], "twinsrv.db")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	bad := bytes.ReplaceAll(data, []byte("rust-eats-this"), []byte("sust-eats-this"))
	require.NotEqual(t, data, bad)
	require.NoError(t, os.WriteFile(path, bad, 0o600))
	w.start()

	r := w.run("ls", "docs")
	require.Equal(t, 8, r.code, r.stderr)
	require.Contains(t, r.stdout, `"name":"whole"`)
	require.NotContains(t, r.stdout, "bad one")
	require.Contains(t, r.stderr, "docs/bad one")
	require.Contains(t, r.stderr, "twinsrv quarantine list")
	file := filepath.Join(t.TempDir(), "docs.ndjson")
	r = w.run("export", "docs", "-f", file)
	require.Equal(t, 8, r.code, r.stderr)
	require.Contains(t, r.stdout, `"unreadable": 1`)
	exported, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(exported), "\n"))
	require.Contains(t, string(exported), `{"end":true,"entities":2}`)
	require.Contains(t, w.fails(1, "get", "docs", "bad one"), "twinsrv quarantine show")
	require.Contains(t, w.must("quarantine", "list", "-o", "yaml"), "name: bad one\n")
	r = w.run("import", "ndjson", file, "--pod", "copy")
	require.Equal(t, 8, r.code, r.stderr)
	require.Contains(t, r.stdout, `"code":"quarantined"`)
}
