package postgres

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/postgres/pgtest"
)

// Two processes that migrate one new schema at once both end well, and one of
// them has done it.
func TestTwoProcessesMigrate(t *testing.T) {
	t.Parallel()
	for range 3 {
		url := freshURL(t)
		var outs [2]bytes.Buffer
		a, b := child(t, "migrate", url), child(t, "migrate", url)
		a.Stdout, b.Stdout = &outs[0], &outs[1]
		require.NoError(t, a.Start())
		require.NoError(t, b.Start())
		aerr, berr := a.Wait(), b.Wait()
		require.NoError(t, aerr, outs[0].String())
		require.NoError(t, berr, outs[1].String())
		require.Equal(t, "2 2\n0 2\n", max(outs[0].String(), outs[1].String())+min(outs[0].String(), outs[1].String()))
		mustCommit(t, mustOpen(t, url, Config{NoMigrate: true}), create(rooms("a"), "{}"))
	}
}

func TestMigrateSaysWhatItDid(t *testing.T) {
	t.Parallel()
	url := freshURL(t)
	_, err := Open(ctx, url, Config{NoMigrate: true})
	require.ErrorIs(t, err, ErrSchema)
	require.ErrorContains(t, err, "twinsrv store migrate")
	m, err := Migrate(ctx, url)
	require.NoError(t, err)
	require.Len(t, m.Applied, 2)
	require.Equal(t, "00001_store.sql", m.Applied[0].Name)
	require.Equal(t, "00002_history.sql", m.Applied[1].Name)
	require.Equal(t, int64(2), m.Version)
	s := mustOpen(t, url, Config{NoMigrate: true})
	m, err = Migrate(ctx, url) // while a server serves
	require.NoError(t, err)
	require.Empty(t, m.Applied)
	require.Equal(t, int64(2), m.Version)
	require.Equal(t, s.target.schema, m.Schema)
	mustCommit(t, s, create(rooms("a"), "{}"))
}

func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	url := freshURL(t)
	require.NoError(t, mustOpen(t, url, Config{}).Close())
	execSQL(t, url, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (7, true)`)
	before := ask[int64](t, url, `SELECT epoch FROM store`)
	for _, no := range []bool{false, true} {
		_, err := Open(ctx, url, Config{NoMigrate: no})
		require.ErrorIs(t, err, ErrSchema)
		require.ErrorContains(t, err, "version 7 and this program knows 2: use a newer program")
	}
	_, err := Migrate(ctx, url)
	require.ErrorIs(t, err, ErrSchema)
	require.Equal(t, before, ask[int64](t, url, `SELECT epoch FROM store`), "nothing was changed")
}

func TestTheSchemaIsWhatTheURLSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, config, want string }{
		{"postgres://h/d", "", "twinsrv"},
		{"postgres://h/d?schema=a", "", "a"},
		{"postgres://h/d?search_path=a", "", "a"},
		{"postgres://h/d?search_path=%22A%20b%22,public", "", "A b"},
		{"postgres://h/d?schema=a&search_path=b", "", "a"},
		{"postgres://h/d?schema=a", "c", "c"},
		{"host=h dbname=d schema=a", "", "a"},
	} {
		target, err := parse(c.url, Config{Schema: c.config})
		require.NoError(t, err, c.url)
		require.Equal(t, c.want, target.schema, c.url)
	}
	for _, bad := range []string{"postgres://h/d?schema=pg_x", "postgres://h/d?schema=" + strings.Repeat("x", 64), "postgres://h/d?schema=%ff", "postgres://h/d?search_path=$user"} {
		_, err := parse(bad, Config{})
		require.ErrorContains(t, err, "schema", bad)
	}
	_, err := parse("postgres://u:secret@h:x/d", Config{})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")

	need(t)
	shared.start()
	require.NoError(t, shared.err)
	odd := mustOpen(t, pgtest.WithSchema(shared.url, `O"dd; schema`), Config{})
	mustCommit(t, odd, create(rooms("a"), "{}"))
	require.NotContains(t, odd.String(), "@")
}

// Whatever the server's defaults are, a commit waits for the disk, and sees what
// was committed before it.
func TestDefaultsOfTheServerDoNotMatter(t *testing.T) {
	t.Parallel()
	need(t)
	shared.start()
	require.NoError(t, shared.err)
	url, err := shared.cluster.Database(ctx, "")
	require.NoError(t, err)
	name := url[strings.LastIndexByte(url, '/')+1 : strings.IndexByte(url, '?')]
	for _, setting := range []string{"synchronous_commit = off", "default_transaction_isolation = 'serializable'",
		"default_transaction_read_only = on", "statement_timeout = 1000", "search_path = 'nowhere'"} {
		execSQL(t, shared.url, fmt.Sprintf("ALTER DATABASE %s SET %s", name, setting))
	}
	var said bytes.Buffer
	s := mustOpen(t, url, Config{Logger: slog.New(slog.NewTextHandler(&said, nil))})
	mustCommit(t, s, create(rooms("a"), "{}"))
	var level string
	require.NoError(t, s.writer.QueryRow(ctx, `SHOW synchronous_commit`).Scan(&level))
	require.Equal(t, "on", level)
	require.NoError(t, s.writer.QueryRow(ctx, `SHOW transaction_isolation`).Scan(&level))
	require.Equal(t, "read committed", level)
	require.Contains(t, said.String(), "fsync=off", "a server that does not wait for the disk is reported")

	_, err = s.Commit(ctx, []persist.Unit{create(rooms("b"), "{}")})
	require.NoError(t, err)
	latin, err := shared.cluster.Database(ctx, "TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
	require.NoError(t, err)
	_, err = Open(ctx, latin, Config{})
	require.ErrorIs(t, err, ErrSchema)
	require.ErrorContains(t, err, "UTF8")
	_, err = Migrate(ctx, latin)
	require.ErrorIs(t, err, ErrSchema)
}

func TestOpenFailsClearly(t *testing.T) {
	t.Parallel()
	_, err := Open(ctx, "postgres://nobody@127.0.0.1:1/none?sslmode=disable", Config{})
	require.ErrorContains(t, err, "127.0.0.1:1")
	_, err = Open(ctx, "postgres://h/d?nonsense=%zz", Config{})
	require.Error(t, err)
	url := freshURL(t)
	s := mustOpen(t, url, Config{})
	require.NoError(t, s.Close())
	execSQL(t, url, `DELETE FROM store`)
	_, err = Open(ctx, url, Config{})
	require.ErrorIs(t, err, ErrSchema)
	require.ErrorContains(t, err, "lost its row")
	execSQL(t, url, `DROP TABLE changes CASCADE`)
	execSQL(t, url, `INSERT INTO store (epoch, instance, holder, position) VALUES (0, '', '', 0)`)
	_, err = Open(ctx, url, Config{})
	require.ErrorIs(t, err, ErrSchema)
	require.ErrorContains(t, err, "changes")
}
