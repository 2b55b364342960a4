package pgtest_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/twinsrv/twinsrv/persist/postgres/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

func TestClusterComesAndGoes(t *testing.T) {
	if why := pgtest.Missing(); why != "" {
		if slices.Contains(strings.Split(os.Getenv("TWINSRV_REQUIRE"), ","), "postgres") {
			t.Fatal("needs postgres: " + why)
		}
		t.Skip("needs postgres: " + why)
	}
	c, err := pgtest.Start(ctx, pgtest.Options{Settings: map[string]string{"work_mem": "5MB"}})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Stop()) }()
	url, err := c.Database(ctx, "")
	require.NoError(t, err)
	other, err := c.Database(ctx, "")
	require.NoError(t, err)
	require.NotEqual(t, url, other)

	ask := func(url, sql string) (answer string) {
		conn, err := pgx.Connect(ctx, url)
		require.NoError(t, err)
		defer conn.Close(ctx)
		require.NoError(t, conn.QueryRow(ctx, sql).Scan(&answer))
		return answer
	}
	require.Equal(t, "5MB", ask(url, "SHOW work_mem"))
	require.Equal(t, "on", ask(url, "SHOW fsync"))
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, "CREATE TABLE t AS SELECT 1 AS n")
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
	c.Kill()
	_, err = pgx.Connect(ctx, url)
	require.Error(t, err)
	require.NoError(t, c.Up(ctx))
	require.Equal(t, "1", ask(url, "SELECT n::text FROM t"), c.Log())
	require.NoError(t, c.Restart(ctx))
	require.Equal(t, "1", ask(url, "SELECT n::text FROM t"))

	p, err := pgtest.NewProxy(c.Address())
	require.NoError(t, err)
	defer p.Close()
	through, err := pgtest.Through(p.Address(), url)
	require.NoError(t, err)
	require.Equal(t, "1", ask(through, "SELECT n::text FROM t"))
	p.Refuse(true)
	_, err = pgx.Connect(ctx, through)
	require.Error(t, err)
}
