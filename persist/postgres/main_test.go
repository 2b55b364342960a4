package postgres

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/persist/postgres/pgtest"
	"github.com/twinsrv/twinsrv/snapshot"
)

var ctx = context.Background()

// patience bounds waits that end much sooner.
const (
	patience = 30 * time.Second
	tick     = 5 * time.Millisecond
)

func TestMain(m *testing.M) {
	if code, ok := runAsChild(); ok {
		os.Exit(code)
	}
	flag.Parse()
	if os.Getenv("TWINSRV_LONG") == "" {
		// A check of the model is some hundred transactions and a few servers here.
		if err := flag.Set("rapid.checks", "20"); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the server:", err)
		code = 1
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// shared has the cluster and the database of all tests that do not spoil the
// server. It does not wait for the disk: what kill -9 leaves is the same.
var shared lazyCluster

type lazyCluster struct {
	once    sync.Once
	cluster *pgtest.Cluster
	url     string
	err     error
	schemas atomic.Int64
}

func (l *lazyCluster) start() {
	l.once.Do(func() {
		if l.cluster, l.err = pgtest.Start(ctx, pgtest.Options{NoSync: true}); l.err != nil {
			return
		}
		// An order of names that is not the bytes' order: the tables must say
		// theirs themselves.
		if l.url, l.err = l.cluster.Database(ctx, "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C'"); l.err != nil {
			l.url, l.err = l.cluster.Database(ctx, "") // a server without ICU
		}
	})
}

func (l *lazyCluster) stop() error {
	if l.cluster == nil {
		return nil
	}
	return l.cluster.Stop()
}

// need skips a test where there can be no server, or fails it where one is
// required.
func need(t testing.TB) {
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

// freshURL returns the URL of a new schema.
func freshURL(t testing.TB) string {
	t.Helper()
	need(t)
	shared.start()
	require.NoError(t, shared.err)
	schema := fmt.Sprintf("s%d", shared.schemas.Add(1))
	return pgtest.WithSchema(shared.url, schema)
}

// through returns a URL that leads through a new proxy.
func through(t testing.TB, url string) (*pgtest.Proxy, string) {
	t.Helper()
	p, err := pgtest.NewProxy(shared.cluster.Address())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	url, err = pgtest.Through(p.Address(), url)
	require.NoError(t, err)
	return p, url
}

// ownCluster starts a server for one test, which waits for the disk.
func ownCluster(t testing.TB) (c *pgtest.Cluster, url string) {
	t.Helper()
	need(t)
	c, err := pgtest.Start(ctx, pgtest.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	url, err = c.Database(ctx, "")
	require.NoError(t, err)
	return c, url
}

func mustOpen(t testing.TB, url string, cfg Config) *Store {
	t.Helper()
	s, err := Open(ctx, url, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// execSQL executes a statement past the store, in its schema.
func execSQL(t testing.TB, url, statement string, args ...any) int64 {
	t.Helper()
	target, err := parse(url, Config{}.withDefaults())
	require.NoError(t, err)
	c, err := pgx.ConnectConfig(ctx, target.pool.ConnConfig)
	require.NoError(t, err)
	defer c.Close(ctx)
	tag, err := c.Exec(ctx, statement, args...)
	require.NoError(t, err)
	return tag.RowsAffected()
}

// ask reads one value past the store.
func ask[T any](t testing.TB, url, query string, args ...any) (v T) {
	t.Helper()
	target, err := parse(url, Config{}.withDefaults())
	require.NoError(t, err)
	c, err := pgx.ConnectConfig(ctx, target.pool.ConnConfig)
	require.NoError(t, err)
	defer c.Close(ctx)
	require.NoError(t, c.QueryRow(ctx, query, args...).Scan(&v))
	return v
}

func rooms(name string) persist.Key { return persist.Key{Pod: "rooms", Name: name} }

func create(k persist.Key, state string) persist.Unit {
	return persist.Unit{Key: k, Record: record(1, state), Changes: []persist.Change{{Revision: 1, Type: "made", Data: []byte(state)}}}
}

func step(k persist.Key, life, expect uint64, state string) persist.Unit {
	return persist.Unit{Key: k, Life: life, Expect: expect, Record: record(expect+1, state),
		Changes: []persist.Change{{Revision: expect + 1, Type: "changed", Data: []byte(state)}}}
}

func record(revision uint64, state string) *snapshot.Record {
	return &snapshot.Record{Revision: revision, Changed: time.Unix(int64(revision), 0), Codec: "json", State: []byte(state)}
}

func mustCommit(t testing.TB, s *Store, units ...persist.Unit) []persist.Outcome {
	t.Helper()
	o, err := s.Commit(ctx, units)
	require.NoError(t, err)
	for i := range o {
		require.NoError(t, o[i].Err)
	}
	return o
}

func state(t testing.TB, s *Store, k persist.Key) string {
	t.Helper()
	r, err := s.Load(ctx, k)
	require.NoError(t, err)
	return string(r.State)
}

func TestConforms(t *testing.T) { conforms(t, Config{MaxRecord: 2 << 20}) }

// TestConformsInHalves has every call of two units or more in two transactions.
func TestConformsInHalves(t *testing.T) { conforms(t, Config{MaxRecord: 2 << 20, halveFrom: 2}) }

func conforms(t *testing.T, cfg Config) {
	t.Parallel()
	url := freshURL(t) // one schema, emptied each time: making the tables takes longer than most tests
	require.NoError(t, mustOpen(t, url, cfg).Close())
	persisttest.Run(t, func(t *testing.T) persisttest.Fixture {
		execSQL(t, url, `WITH a AS (DELETE FROM records), b AS (DELETE FROM changes), c AS (DELETE FROM entity_rows) UPDATE store SET position = 0`)
		one := func(t *testing.T, statement string, args ...any) {
			require.Equal(t, int64(1), execSQL(t, url, statement, args...))
		}
		return persisttest.Fixture{
			Store:  mustOpen(t, url, cfg),
			Reopen: func(t *testing.T) persist.PersistenceService { return mustOpen(t, url, cfg) },
			Damage: func(t *testing.T, k persist.Key) {
				one(t, `UPDATE records SET record = set_byte(record, length(record)-10, get_byte(record, length(record)-10) # 4)
					WHERE pod = $1 AND name = $2`, k.Pod, k.Name)
			},
			DamageRow: func(t *testing.T, r persist.Row) {
				one(t, `UPDATE entity_rows SET value = value || '\x00' WHERE kind = $1 AND pod = $2 AND name = $3 AND id = $4`,
					r.Kind, r.Key.Pod, r.Key.Name, []byte(r.ID))
			},
			DamageChange: func(t *testing.T, c persist.Change) {
				one(t, `UPDATE changes SET change = set_byte(change, 1, get_byte(change, 1) # 4) WHERE position = $1`, int64(c.Position))
			},
			MaxRecord: cfg.MaxRecord,
		}
	})
}
