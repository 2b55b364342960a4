package killtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/persist/commitlog"
	"github.com/twinsrv/twinsrv/persist/jsonfile"
	"github.com/twinsrv/twinsrv/persist/postgres"
	"github.com/twinsrv/twinsrv/persist/postgres/pgtest"
)

// openStore opens the store of a kind that is at a place.
func openStore(kind, where string) (persist.PersistenceService, error) {
	switch kind {
	case "bolt":
		return openLogged(where)
	case "bolt-alone":
		return bolt.Open(where, bolt.Config{})
	case "json":
		// It writes the entities' files so often that kills meet it.
		return jsonfile.Open(where, jsonfile.Config{Flush: 30 * time.Millisecond, MaxHeld: 32 << 10})
	case "postgres":
		return postgres.Open(context.Background(), where, postgres.Config{})
	}
	return nil, fmt.Errorf("there is no store of the kind %q", kind)
}

// openLogged opens a file of bolt with its commit log in front, which is so small
// and folded so often that kills meet every part of it.
func openLogged(where string) (persist.PersistenceService, error) {
	file, err := bolt.Open(where, bolt.Config{CommitLog: true})
	if err != nil {
		return nil, err
	}
	logged, err := commitlog.Open(where+".log", file, commitlog.Config{
		SegmentSize: 64 << 10, FoldAfter: 10 * time.Millisecond, FoldKeys: 20,
	})
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return logged, nil
}

// place returns where a new store of a kind may be.
func place(t *testing.T, kind string) string {
	t.Helper()
	if kind == "postgres" {
		return server.fresh(t)
	}
	return filepath.Join(t.TempDir(), "store")
}

// server is the PostgreSQL server of all tests. It does not wait for the disk:
// what kill -9 leaves is the same.
var server postgresServer

type postgresServer struct {
	once    sync.Once
	cluster *pgtest.Cluster
	url     string
	err     error
	schemas atomic.Int64
}

// fresh returns the URL of a new schema. Where there can be no server it skips
// the test, or fails it if one is required.
func (s *postgresServer) fresh(t *testing.T) string {
	t.Helper()
	if why := pgtest.Missing(); why != "" {
		if slices.Contains(strings.Split(os.Getenv("TWINSRV_REQUIRE"), ","), "postgres") {
			t.Fatal("needs postgres: " + why)
		}
		t.Skip("needs postgres: " + why)
	}
	s.once.Do(func() {
		if s.cluster, s.err = pgtest.Start(context.Background(), pgtest.Options{NoSync: true}); s.err == nil {
			s.url, s.err = s.cluster.Database(context.Background(), "")
		}
	})
	require.NoError(t, s.err)
	return pgtest.WithSchema(s.url, fmt.Sprintf("kills%d", s.schemas.Add(1)))
}

func (s *postgresServer) stop() error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Stop()
}
