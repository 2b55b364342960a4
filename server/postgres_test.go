package server_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist/postgres/pgtest"
)

// postgresServer is the PostgreSQL server of all tests, made by the first that
// needs it.
var postgresServer lazyPostgres

type lazyPostgres struct {
	once    sync.Once
	cluster *pgtest.Cluster
	url     string
	err     error
	schemas atomic.Int64
}

func (l *lazyPostgres) start() {
	l.once.Do(func() {
		// It is the program that is killed here, not the server: that need not
		// wait for the disk.
		if l.cluster, l.err = pgtest.Start(context.Background(), pgtest.Options{NoSync: true}); l.err == nil {
			l.url, l.err = l.cluster.Database(context.Background(), "")
		}
	})
}

func (l *lazyPostgres) stop() error {
	if l.cluster == nil {
		return nil
	}
	return l.cluster.Stop()
}

// needPostgres skips a test where there can be no PostgreSQL server, or fails it
// where one is required.
func needPostgres(t *testing.T) {
	t.Helper()
	why := pgtest.Missing()
	if why == "" {
		return
	}
	if slices.Contains(strings.Split(os.Getenv("TWINSRV_REQUIRE"), ","), "postgres") {
		t.Fatal("needs postgres: " + why)
	}
	t.Skip("needs postgres: " + why)
}

// freshPostgres names a store of its own in the PostgreSQL server, with a
// password that must not be seen anywhere.
func freshPostgres(t *testing.T) string {
	t.Helper()
	needPostgres(t)
	postgresServer.start()
	require.NoError(t, postgresServer.err)
	at := pgtest.WithSchema(postgresServer.url, fmt.Sprintf("s%d", postgresServer.schemas.Add(1)))
	user, rest, _ := strings.Cut(strings.TrimPrefix(at, "postgres://"), "@")
	return "postgres://" + user + ":" + secret + "@" + rest
}

const secret = "hunter2-%2F-secret"

// What docs/operations.md says of backups of PostgreSQL works, also while the
// server runs.
func TestDumpAndRestoreOfPostgres(t *testing.T) {
	at := freshPostgres(t)
	dump, restore := postgresTool(t, "pg_dump"), postgresTool(t, "pg_restore")
	p := startWith(t, "--store", at)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	p.must(201, "PUT", entityOf(0), `{"a":1}`)
	plain, schema, _ := strings.Cut(at, "&schema=") // a parameter of twinsrv's own
	file := filepath.Join(t.TempDir(), "twins.dump")
	out, err := exec.Command(dump, "--format=custom", "--schema="+schema, "--file="+file, "--dbname="+plain).CombinedOutput()
	require.NoError(t, err, string(out))
	p.must(200, "PUT", entityOf(0), `{"a":2}`)
	p.terminate()

	other, err := postgresServer.cluster.Database(t.Context(), "")
	require.NoError(t, err)
	out, err = exec.Command(restore, "--dbname="+other, file).CombinedOutput()
	require.NoError(t, err, string(out))
	p = startWith(t, "--store", pgtest.WithSchema(other, schema))
	require.Equal(t, `{"a":1}`, p.must(200, "GET", entityOf(0), ""))
	p.must(200, "PUT", entityOf(0), `{"a":3}`)
	p.terminate()
}

// postgresTool finds a program of PostgreSQL's clients.
func postgresTool(t *testing.T, name string) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	require.NoError(t, err)
	if len(found) > 0 {
		return found[len(found)-1]
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip("needs postgres: there is no " + name)
	}
	return path
}
