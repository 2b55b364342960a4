package modeltest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/persist/jsonfile"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/persist/postgres"
	"github.com/twinsrv/twinsrv/persist/postgres/pgtest"
)

// medium is where a store keeps what it has.
type medium interface {
	// open opens the store that is there.
	open() (persist.PersistenceService, error)
	// closed returns where its data are after the store was closed in order.
	closed(s persist.PersistenceService) medium
	// gated says that a gate is needed around its stores.
	gated() bool
	// crashed returns where its data are after a crash, and gets rid of the
	// store. A gate around it has died; quiet waits until nothing in it changes
	// the store.
	crashed(s persist.PersistenceService, seed uint64, quiet func()) (medium, error)
	// fresh returns an empty one of the same kind.
	fresh() medium
	// restore returns one with what a backup has; an error wrapping
	// errors.ErrUnsupported where there are none.
	restore(r io.Reader) (medium, error)
}

// inMemory is a medium of persisttest.CrashStore.
type inMemory struct{ store *persisttest.CrashStore }

func newInMemory() medium { return &inMemory{persisttest.NewCrashStore()} }

func (m *inMemory) fresh() medium                             { return newInMemory() }
func (m *inMemory) gated() bool                               { return false }
func (m *inMemory) open() (persist.PersistenceService, error) { return m.store, nil }

func (m *inMemory) closed(persist.PersistenceService) medium {
	return &inMemory{&persisttest.CrashStore{Memory: m.store.Memory.Again()}}
}

func (m *inMemory) crashed(_ persist.PersistenceService, seed uint64, _ func()) (medium, error) {
	after := m.store.Crash(seed)
	return &inMemory{&persisttest.CrashStore{Memory: after.Memory}}, nil
}

func (m *inMemory) restore(r io.Reader) (medium, error) {
	restored, err := persisttest.Restore(context.Background(), r)
	if err != nil {
		return nil, err
	}
	return &inMemory{&persisttest.CrashStore{Memory: restored}}, nil
}

// folders gives new paths in the folder of one test.
type folders struct {
	dir string
	n   int
}

func (f *folders) next() string {
	f.n++
	return filepath.Join(f.dir, fmt.Sprint("store", f.n))
}

// onDisk is a medium of files: one of bolt, or a folder of jsonfile.
type onDisk struct {
	places *folders
	path   string
	kind   fileKind
}

type fileKind struct {
	open    func(path string) (persist.PersistenceService, error)
	restore func(path string, r io.Reader) error
}

func boltFiles() fileKind {
	return fileKind{
		open:    func(path string) (persist.PersistenceService, error) { return bolt.Open(path, bolt.Config{}) },
		restore: bolt.Restore,
	}
}

// jsonFiles does not write entities' files behind the commits' back, so that a
// folder can be copied; a flush is one of the things that happen.
func jsonFiles() fileKind {
	return fileKind{
		open: func(path string) (persist.PersistenceService, error) {
			return jsonfile.Open(path, jsonfile.Config{Flush: -1})
		},
		restore: jsonfile.Restore,
	}
}

func newOnDisk(places *folders, kind fileKind) medium { return &onDisk{places, places.next(), kind} }

func (m *onDisk) gated() bool                                { return true }
func (m *onDisk) fresh() medium                              { return newOnDisk(m.places, m.kind) }
func (m *onDisk) open() (persist.PersistenceService, error)  { return m.kind.open(m.path) }
func (m *onDisk) closed(s persist.PersistenceService) medium { return m }

// crashed copies what is on the disk while the store still has it open.
func (m *onDisk) crashed(s persist.PersistenceService, _ uint64, quiet func()) (medium, error) {
	quiet()
	after := &onDisk{m.places, m.places.next(), m.kind}
	info, err := os.Stat(m.path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		err = os.CopyFS(after.path, os.DirFS(m.path))
	} else {
		err = copyFile(after.path, m.path)
	}
	if err != nil {
		return nil, err
	}
	_ = s.Close() // it is abandoned; this gives its memory back
	return after, os.RemoveAll(m.path)
}

func copyFile(to, from string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o600)
}

func (m *onDisk) restore(r io.Reader) (medium, error) {
	after := &onDisk{m.places, m.places.next(), m.kind}
	return after, m.kind.restore(after.path, r)
}

// inPostgres is a medium of a schema of the shared server.
type inPostgres struct {
	name string // of the schema, and of the store's connections
}

func newInPostgres() medium { return &inPostgres{fmt.Sprint("model", server.schemas.Add(1))} }

func (m *inPostgres) fresh() medium { return newInPostgres() }
func (m *inPostgres) gated() bool   { return true }

func (m *inPostgres) open() (persist.PersistenceService, error) {
	url := pgtest.WithSchema(server.url, m.name) + "&application_name=" + m.name
	return postgres.Open(context.Background(), url, postgres.Config{})
}

func (m *inPostgres) closed(persist.PersistenceService) medium { return m }

// crashed cuts the store's connections where they are, or kills the server.
func (m *inPostgres) crashed(s persist.PersistenceService, seed uint64, _ func()) (medium, error) {
	ctx := context.Background()
	if seed%5 == 4 {
		server.cluster.Kill()
		_ = s.Close() // its connections are gone
		return m, server.cluster.Up(ctx)
	}
	conn, err := pgx.Connect(ctx, server.url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", m.name); err != nil {
		return nil, err
	}
	_ = s.Close() // its connections are gone
	return m, nil
}

func (m *inPostgres) restore(io.Reader) (medium, error) {
	return nil, fmt.Errorf("a schema is restored by pg_restore")
}

// server is the PostgreSQL server of all tests. It does not wait for the disk:
// what is left when its clients or it are killed is the same.
var server postgresServer

type postgresServer struct {
	once    sync.Once
	cluster *pgtest.Cluster
	url     string
	err     error
	schemas atomic.Int64
}

// need starts the server. Where there can be none it skips the test, or fails it
// if one is required.
func (s *postgresServer) need(t *testing.T) {
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
	if s.err != nil {
		t.Fatal(s.err)
	}
}

func (s *postgresServer) stop() error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Stop()
}
