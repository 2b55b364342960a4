package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// inFolders are the kinds of store that write backups.
func inFolders() []string { return []string{"bolt", "json"} }

// pairs writes two documents in turn, each time the left one first, until it is
// stopped.
func pairs(p *process) (end func() (rounds int)) {
	stop, ended := make(chan struct{}), make(chan int)
	go func() {
		for n := 1; ; n++ {
			select {
			case <-stop:
				ended <- n - 1
				return
			default:
			}
			for _, name := range []string{"left", "right"} {
				if status, _, err := p.ask(http.MethodPut, "/v1/pods/docs/entities/"+name+"/state", fmt.Sprintf(`{"n":%d}`, n)); err != nil || status/100 != 2 {
					ended <- n - 1
					return
				}
			}
		}
	}()
	return func() int { close(stop); return <-ended }
}

func (p *process) number(name string) int {
	p.t.Helper()
	var state struct{ N int }
	require.NoError(p.t, json.Unmarshal([]byte(p.must(200, "GET", "/v1/pods/docs/entities/"+name+"/state", "")), &state))
	return state.N
}

// A backup of a server under load has all that was acknowledged before it, and
// is of one moment.
func TestBackupUnderLoad(t *testing.T) {
	for _, kind := range inFolders() {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			p := startWith(t, "--store", kind+":"+filepath.Join(dir, "data"))
			p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
			w, end := write(p, 4), pairs(p)
			require.Eventually(t, func() bool { return w.count(200, 201) > 100 }, patience, tick)
			for i := range 2 {
				before := w.snapshot()
				file := filepath.Join(dir, fmt.Sprint("backup", i))
				require.Contains(t, succeeds(t, "store", "backup", file, "--server", p.url), file)
				restored := kind + ":" + filepath.Join(dir, "deep", fmt.Sprint("restored", i))
				require.Contains(t, succeeds(t, "store", "restore", file, "--store", restored), restored)
				again := startWith(t, "--store", restored)
				before.sent = w.snapshot().sent
				before.check(t, again)
				left, right := again.number("left"), again.number("right")
				require.Contains(t, []int{right, right + 1}, left, "the backup is of more than one moment")
				again.must(200, "PUT", entityOf(0), `{"n":1,"again":1}`)
				again.terminate()
			}
			require.Positive(t, end())
			w.end()
			w.check(t, p)
			p.terminate()
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, entries, 4, "nothing else is left: %v", entries)
		})
	}
}

// Without a server the store itself is backed up.
func TestBackupOfStoppedServer(t *testing.T) {
	for _, kind := range inFolders() {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			at, file := kind+":"+filepath.Join(dir, "data"), filepath.Join(dir, "backup")
			require.Contains(t, fails(t, "store", "backup", file, "--store", at), "there is no store")
			require.NoFileExists(t, file)
			p := startWith(t, "--store", at)
			p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
			p.must(201, "PUT", "/v1/pods/docs/entities/a%2Fb/state", `{"a":1}`)
			whole := p.must(200, "GET", "/v1/pods/docs/entities", "")
			inUse := fails(t, "store", "backup", file, "--store", at)
			require.Contains(t, inUse, "in use")
			require.Contains(t, inUse, "--server")
			p.terminate()
			succeeds(t, "store", "backup", file, "--store", at)
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
			code, _, stderr := command(t, "store", "backup", file, "--store", at)
			require.Equal(t, 2, code)
			require.Contains(t, stderr, "--force")
			succeeds(t, "store", "backup", file, "--store", at, "--force")

			restored := kind + ":" + filepath.Join(dir, "restored")
			succeeds(t, "store", "restore", file, "--store", restored)
			require.Contains(t, fails(t, "store", "restore", file, "--store", restored), filepath.Join(dir, "restored"))
			p = startWith(t, "--store", restored)
			require.Equal(t, whole, p.must(200, "GET", "/v1/pods/docs/entities", ""))
			p.terminate()
		})
	}
}

// What is no whole backup makes no store.
func TestRestoreRefuses(t *testing.T) {
	dir := t.TempDir()
	p := start(t, filepath.Join(dir, "bolt"))
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	p.must(201, "PUT", entityOf(0), `{"text":"`+strings.Repeat("x", 50_000)+`"}`)
	p.terminate()
	p = startWith(t, "--store", "json:"+filepath.Join(dir, "json"))
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	p.terminate()
	for _, kind := range inFolders() {
		file := filepath.Join(dir, kind+".backup")
		succeeds(t, "store", "backup", file, "--store", kind+":"+filepath.Join(dir, kind))
		whole, err := os.ReadFile(file)
		require.NoError(t, err)
		other := map[string]string{"bolt": "json", "json": "bolt"}[kind]
		code, _, stderr := command(t, "store", "restore", file, "--store", other+":"+filepath.Join(dir, "new"))
		require.Equal(t, 2, code)
		require.Contains(t, stderr, kind+":DIR")
		for name, content := range map[string][]byte{
			"cut": whole[:len(whole)/2], "short": whole[:600], "empty": nil, "other": bytes.Repeat([]byte("no backup\n"), 100),
		} {
			bad := filepath.Join(dir, name)
			require.NoError(t, os.WriteFile(bad, content, 0o600))
			require.Contains(t, fails(t, "store", "restore", bad, "--store", kind+":"+filepath.Join(dir, "new", "er")), bad)
			require.NoFileExists(t, filepath.Join(dir, "new", "er", "twinsrv.db"))
			require.NoFileExists(t, filepath.Join(dir, "new", "er", "store.json"))
		}
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "new")))
	}
	code, _, stderr := command(t, "store", "restore", filepath.Join(dir, "none"), "--data", filepath.Join(dir, "new"))
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "none")
	file := filepath.Join(dir, "bolt.backup")
	for _, at := range []string{"postgres://u@127.0.0.1:1/d", "memory:"} {
		code, _, _ := command(t, "store", "restore", file, "--store", at)
		require.Equal(t, 2, code)
	}
	require.Contains(t, fails(t, "store", "restore", file, "--store", "postgres://u@127.0.0.1:1/d"), "pg_restore")
	require.Contains(t, fails(t, "store", "backup", filepath.Join(dir, "pg"), "--store", "postgres://u@127.0.0.1:1/d"), "pg_dump")
}

// An answer that breaks off leaves no file, and neither does one of another
// program.
func TestBackupThatBreaksOff(t *testing.T) {
	var answer atomic.Value // func(http.ResponseWriter)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer.Load().(func(http.ResponseWriter))(w) }))
	defer other.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "backup")
	answer.Store(func(w http.ResponseWriter) {
		_, _ = w.Write(make([]byte, 300_000))
		panic(http.ErrAbortHandler)
	})
	require.Contains(t, fails(t, "store", "backup", file, "--server", other.URL), "not whole")
	answer.Store(func(w http.ResponseWriter) { http.Error(w, "\x1b[31mwho is there?", http.StatusTeapot) })
	said := fails(t, "store", "backup", file, "--server", other.URL)
	require.Contains(t, said, "is the address right?")
	require.NotContains(t, said, "\x1b")
	require.NoError(t, os.WriteFile(file, []byte("an old one"), 0o600))
	fails(t, "store", "backup", file, "--force", "--server", other.URL)
	fails(t, "store", "backup", filepath.Join(dir, "none", "backup"), "--server", other.URL)
	old, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "an old one", string(old))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	code, _, stderr := command(t, "store", "backup", file, "--force", "--server", other.URL, "--store", "bolt:x")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "give one of them")
	require.Contains(t, fails(t, "store", "backup", file, "--force", "--server", "http://u:hunter2@127.0.0.1:1"), "no server answers at http://u:xxxxx@127.0.0.1:1")
	for _, url := range []string{"127.0.0.1:8080", "ftp://x", "http://", "http://h/?q=1"} {
		code, _, stderr := command(t, "store", "backup", file, "--force", "--server", url)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "such as http://127.0.0.1:8080")
	}
}

// Compacting gives room back and keeps everything.
func TestCompact(t *testing.T) {
	for _, kind := range inFolders() {
		t.Run(kind, func(t *testing.T) {
			at := kind + ":" + filepath.Join(t.TempDir(), "data")
			require.Contains(t, fails(t, "store", "compact", "--store", at), "there is no store")
			p := startWith(t, "--store", at, "--keep-changes", "10")
			p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
			for i := range 50 {
				p.must(201, "PUT", entityOf(i), `{"text":"`+strings.Repeat("x", 20_000)+`"}`)
				if i > 0 {
					p.must(204, "DELETE", strings.TrimSuffix(entityOf(i), "/state"), "")
				}
			}
			whole := p.must(200, "GET", "/v1/pods/docs/entities", "")
			require.Contains(t, fails(t, "store", "compact", "--store", at), "in use")
			p.terminate()
			require.Contains(t, succeeds(t, "store", "compact", "--store", at), at)
			p = startWith(t, "--store", at)
			require.True(t, whole == p.must(200, "GET", "/v1/pods/docs/entities", ""), "it is not what it was")
			p.terminate()
		})
	}
	for _, at := range []string{"postgres://u@127.0.0.1:1/d", "memory:"} {
		code, _, _ := command(t, "store", "compact", "--store", at)
		require.Equal(t, 2, code)
	}
}

func TestMigrate(t *testing.T) {
	require.Contains(t, succeeds(t, "store", "migrate", "--store", "bolt:x"), "nothing to migrate")
	at := freshPostgres(t)
	said := fails(t, "store", "check", "--store", at)
	require.Contains(t, said, "twinsrv store migrate")
	require.Contains(t, succeeds(t, "store", "migrate", "--store", at), "applied")
	again := succeeds(t, "store", "migrate", "--store", at)
	require.NotContains(t, again, "applied")
	require.Contains(t, again, "is at version")
	succeeds(t, "store", "check", "--store", at)
}
