package server_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/server"
)

// kept are the stores that outlive a server, by kind: what --store takes.
func kept(t *testing.T) map[string]func(t *testing.T) string {
	t.Helper()
	return map[string]func(t *testing.T) string{
		"bolt":     func(t *testing.T) string { return "bolt:" + filepath.Join(t.TempDir(), "a", "data") },
		"json":     func(t *testing.T) string { return "json:" + filepath.Join(t.TempDir(), "a", "data") },
		"postgres": freshPostgres,
	}
}

// Every store serves the same, and keeps what was acknowledged over kill -9.
func TestStores(t *testing.T) {
	for kind, fresh := range kept(t) {
		t.Run(kind, func(t *testing.T) {
			at := fresh(t)
			p := startWith(t, "--store", at)
			require.Contains(t, p.must(200, "GET", "/healthz", ""), `"store":"`+kind+`"`)
			p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
			w := write(p, 4)
			require.Eventually(t, func() bool { return w.count(200, 201) > 50 }, patience, tick)
			p.kill()
			w.end()
			p = startWith(t, "--store", at)
			w.check(t, p)
			second := fails(t, "serve", "--store", at, "--listen", "127.0.0.1:0")
			require.Contains(t, second, "the store is in use")
			p.terminate()
			for _, text := range []string{p.stderr.String(), p.served, second} {
				require.NotContains(t, text, "hunter2")
				require.NotContains(t, text, "secret")
			}
		})
	}
}

// A store in memory ends with the server. Lives are not given again.
func TestStoreInMemory(t *testing.T) {
	p := startWith(t, "--store", "memory:")
	require.Contains(t, p.must(200, "GET", "/healthz", ""), `"store":"memory"`)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	first := p.must(201, "PUT", entityOf(0), `{}`)
	require.Contains(t, p.must(501, "POST", "/v1/store/backup", ""), "no_backup")
	p.terminate()
	p = startWith(t, "--store", "memory:")
	p.must(404, "GET", "/v1/pods/docs", "")
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	require.NotEqual(t, first, p.must(201, "PUT", entityOf(0), `{}`))
	p.terminate()
}

func TestStoreOfTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TWINSRV_STORE", "json:"+filepath.Join(dir, "env"))
	t.Setenv("TWINSRV_IDLE_AFTER", "1h")
	t.Setenv("TWINSRV_MAX_ACTIVE", "7")
	t.Setenv("TWINSRV_KEEP_CHANGES", "10")
	t.Setenv("TWINSRV_KEEP_FOR", "1h")
	p := startWith(t)
	require.Contains(t, p.must(200, "GET", "/healthz", ""), `"store":"json"`)
	p.terminate()
	require.FileExists(t, filepath.Join(dir, "env", "store.json"))
	// The command line goes before the environment.
	p = startWith(t, "--data", filepath.Join(dir, "flag"))
	require.Contains(t, p.must(200, "GET", "/healthz", ""), `"store":"bolt"`)
	p.terminate()
	t.Setenv("TWINSRV_DATA", filepath.Join(dir, "none"))
	p = startWith(t, "--store", "bolt:"+filepath.Join(dir, "flag"))
	p.terminate()
	require.NoDirExists(t, filepath.Join(dir, "none"))
}

func TestBadStores(t *testing.T) {
	dir := t.TempDir()
	usage := func(want string, args ...string) {
		t.Helper()
		code, _, stderr := command(t, args...)
		require.Equal(t, 2, code, stderr)
		require.Contains(t, stderr, want)
		require.NotContains(t, stderr, "hunter2")
	}
	for _, at := range []string{"./data", "bolt:", "json:", "sqlite:x", "bolt://x", "memory:x", "postgress://u:hunter2@h/d"} {
		usage("bolt:DIR", "serve", "--store", at)
		usage("json:DIR", "store", "check", "--store", at)
	}
	for _, at := range []string{"postgres://u:hunter2/x@h/d", "postgres:u:hunter2@h/d", "postgresql://u:hunter2@h:port/d"} {
		usage("percent-encoded", "serve", "--store", at)
	}
	usage("give one of them", "serve", "--store", "bolt:"+dir, "--data", dir)
	usage("--keep-changes", "serve", "--keep-changes", "0")
	usage("--keep-for", "serve", "--keep-for=-1s")
	usage("--idle-after", "serve", "--idle-after", "0")
	usage("--max-active", "serve", "--max-active", "0")
	for _, password := range []string{"u:hunter2@", "u@"} {
		code, _, stderr := command(t, "serve", "--listen", "127.0.0.1:0", "--store", "postgres://"+password+"127.0.0.1:1/d?sslpassword=hunter2&sslmode=disable")
		require.Equal(t, 1, code)
		require.Contains(t, stderr, "127.0.0.1")
		require.NotContains(t, stderr, "hunter2")
	}
}

// A folder with a store of one kind does not become an empty one of another.
func TestStoreOfTheOtherKind(t *testing.T) {
	dir := t.TempDir()
	p := startWith(t, "--store", "json:"+dir)
	p.terminate()
	require.Contains(t, fails(t, "--store", "bolt:"+dir), "json:"+dir)
	require.Contains(t, fails(t, "store", "check", "--store", "bolt:"+dir), "json:"+dir)
	other := t.TempDir()
	p = startWith(t, "--store", "bolt:"+other)
	p.terminate()
	require.Contains(t, fails(t, "--store", "json:"+other), "bolt:"+other)
}

// A program that embeds the server can bring a store of its own.
func TestOpenService(t *testing.T) {
	store := memory.Open(memory.Config{})
	s, err := server.Open(t.Context(), server.Config{Service: store})
	require.NoError(t, err)
	require.Empty(t, s.Store())
	require.NoError(t, s.Close(t.Context()))
	_, err = store.Position(t.Context())
	require.NoError(t, err, "it stays open")
	require.NoError(t, store.Close())

	for _, cfg := range []server.Config{
		{Service: store, Data: "x"}, {Service: store, Store: "memory:"}, {Store: "memory:", Data: "x"}, {Store: "nonsense"},
	} {
		_, err := server.Open(t.Context(), cfg)
		require.ErrorIs(t, err, server.ErrStore)
	}
	dir := t.TempDir()
	s, err = server.Open(t.Context(), server.Config{Store: "json:" + dir})
	require.NoError(t, err)
	require.Equal(t, "json:"+dir, s.Store())
	_, err = server.OpenStore(t.Context(), "json:"+dir, nil)
	require.ErrorIs(t, err, server.ErrInUse)
	require.NoError(t, s.Close(t.Context()))
	again, err := server.OpenStore(t.Context(), "json:"+dir, nil)
	require.NoError(t, err)
	require.NoError(t, again.Close())
	_, err = server.OpenStore(t.Context(), "nonsense", nil)
	require.ErrorIs(t, err, server.ErrStore)
	require.True(t, strings.HasPrefix(err.Error(), "bad store"))
}
