package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTokenFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tokens")
	write := func(text string, mode os.FileMode) {
		require.NoError(t, os.WriteFile(file, []byte(text), mode))
		require.NoError(t, os.Chmod(file, mode))
	}
	data := filepath.Join(dir, "data")
	for text, says := range map[string]string{
		"read": "line 1", "read \n": "line 1", "\n# x\nwrite a b\n": "line 3", "admin secret": "line 1", "": "no token", "# read secret": "no token", "read s\u00e9cret": "line 1",
	} {
		write(text, 0o600)
		out := fails(t, "--data", data, "--listen", "127.0.0.1:0", "--token-file", file)
		require.Contains(t, out, says)
		require.NotContains(t, out, "secret")
	}
	write("write secret\n", 0o644)
	require.Contains(t, fails(t, "--data", data, "--listen", "127.0.0.1:0", "--token-file", file), "0644")
	code, _, stderr := command(t, "--data", data, "--listen", "127.0.0.1:0", "--token-file", filepath.Join(dir, "none"))
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "none")
	require.Contains(t, fails(t, "--data", data, "--listen", "127.0.0.1:0", "--token-file", dir), "regular file")
	require.NoDirExists(t, data, "nothing is made for a start that is refused")

	write("# the two of us\nwrite secret\n\n  read look\n", 0o640)
	p := startWith(t, "--data", data, "--token-file", file)
	p.must(401, "GET", "/v1/pods", "")
	p.must(200, "GET", "/v1/pods", "", "Authorization", "Bearer look")
	p.must(403, "PUT", "/v1/pods/docs", `{"type":"document"}`, "Authorization", "Bearer look")
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`, "Authorization", "Bearer secret", "Host", "twins.example")
	p.must(200, "GET", "/healthz", "")
	require.Contains(t, fails(t, "store", "backup", filepath.Join(dir, "backup"), "--server", p.url), "TWINSRV_TOKEN")
	t.Run("command", func(t *testing.T) {
		t.Setenv("TWINSRV_TOKEN", "secret")
		succeeds(t, "store", "backup", filepath.Join(dir, "backup"), "--server", p.url)
	})

	write("read", 0o600)
	p.signal(syscall.SIGHUP)
	require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), "stay what they were") }, patience, tick)
	p.must(200, "GET", "/v1/pods", "", "Authorization", "Bearer look")
	write("read new\n", 0o600)
	p.signal(syscall.SIGHUP)
	require.Eventually(t, func() bool {
		status, _, _ := p.ask("GET", "/v1/pods", "", "Authorization", "Bearer new")
		return status == 200
	}, patience, tick)
	p.must(401, "GET", "/v1/pods", "", "Authorization", "Bearer secret")
	require.NotContains(t, p.stderr.String(), "secret")
	p.terminate()
}

// An address that is not loopback can be served with tokens, and streams end with
// the server.
func TestServingToOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(file, []byte("write secret\n"), 0o600))
	p := startWith(t, "--store", "memory:", "--token-file", file)
	require.Eventually(t, func() bool { status, _, _ := p.ask("GET", "/readyz", ""); return status == 200 }, patience, tick)
	ended := make(chan string, 1)
	go func() {
		_, text, _ := p.ask("GET", "/v1/watch", "", "Authorization", "Bearer secret")
		ended <- text
	}()
	require.Eventually(t, func() bool {
		_, text, _ := p.ask("GET", "/metrics", "", "Authorization", "Bearer secret")
		return strings.Contains(text, "\ntwinsrv_watchers 1\n")
	}, patience, tick)
	p.signal(syscall.SIGTERM)
	took, err := p.wait()
	require.NoError(t, err)
	require.Less(t, took, patience/4, "the stream was not waited for")
	require.Contains(t, <-ended, "event: cut\n")
}
