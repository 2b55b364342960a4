package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/twinsrv/twinsrv/persist"
)

var (
	_ persist.PersistenceService = (*Store)(nil)
	_ persist.Reopener           = (*Store)(nil)
	_ persist.Importer           = (*Store)(nil)
)

// Store is a persist.PersistenceService in a schema of a PostgreSQL database.
// Its methods are safe for concurrent use. Reads see only what is durable.
//
// It heals itself: after a lost connection, or a commit whose outcome is
// unknown, calls fail with persist.ErrUnavailable until it has connected again
// and made sure that nothing of what it lost sight of can still be applied.
// Reopen waits for that, and is not needed.
type Store struct {
	target   target
	cfg      Config
	instance string // tells this Store from every other that ever took the schema
	holder   string

	readers *pgxpool.Pool

	// turn holds the right to commit, take and close: one token. Only its
	// holder touches the fields below.
	turn     chan struct{}
	lock     *serverLock
	writer   *pgx.Conn                               // nil or closed after a failure
	second   *pgx.Conn                               // of the second half of large commits; made and lost with the writer
	prepared map[string]*pgconn.StatementDescription // the statements of both
	used     time.Time                               // when they were last used
	epoch    int64
	next     uint64 // the next position to give

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	jobs sync.WaitGroup // the healer

	mu     sync.Mutex
	outage *outage // nil while the store serves
	fenced error   // why it will not serve again; wraps ErrFenced
	gone   bool    // closed
}

// Open connects to the database that the URL names (postgres://user:password@
// host:port/database?schema=…, or a libpq keyword string), takes the store from
// whoever held it last, and brings its schema up to date.
//
// It fails with an error that wraps ErrLocked when another server has the
// store, ErrSchema when the tables do not fit the program, and else with what
// kept it from connecting.
func Open(ctx context.Context, url string, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	t, err := parse(url, cfg)
	if err != nil {
		return nil, err
	}
	s := &Store{target: t, cfg: cfg, instance: rand.Text(), holder: whoami(time.Now()), turn: make(chan struct{}, 1)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if err := s.open(ctx); err != nil {
		s.disconnect()
		s.stop()
		return nil, err // names the store
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) (err error) {
	if s.readers, err = s.target.readers(ctx, s.cfg); err != nil {
		return fmt.Errorf("%s: %w", s.target.where, err)
	}
	if s.lock, err = s.target.acquire(ctx, s.cfg, s.cfg.LockTimeout); err != nil {
		return fmt.Errorf("%s: %w", s.target.where, err)
	}
	warning, err := checkServer(ctx, s.lock.conn)
	if err != nil {
		return fmt.Errorf("%s: %w", s.target.where, err)
	}
	if warning != "" {
		s.cfg.Logger.Warn(warning, "store", s.target.where)
	}
	// The lock comes first: nobody who serves sees the tables change under it.
	m, err := s.target.migrate(ctx, s.lock.conn, s.cfg.NoMigrate)
	if err != nil {
		return fmt.Errorf("%s: %w", s.target.where, err)
	}
	for _, step := range m.Applied {
		s.cfg.Logger.Info("the schema was migrated", "store", s.target.where, "version", step.Version, "name", step.Name, "took", step.Took)
	}
	if err := s.takeFirst(ctx); err != nil {
		return fmt.Errorf("%s: %w", s.target.where, err)
	}
	if err := s.connect(ctx); err != nil {
		return fmt.Errorf("%s: %w", s.target.where, err)
	}
	s.lock.watch(s.lockLost)
	return nil
}

// String says where the store is, without the password.
func (s *Store) String() string { return s.target.where }

// Close waits for the commit in progress, gives the store back and closes its
// connections. Later calls of every method fail with persist.ErrUnavailable,
// except Close, which returns nil.
func (s *Store) Close() error {
	s.mu.Lock()
	gone := s.gone
	s.gone = true
	s.mu.Unlock()
	s.stop()
	s.jobs.Wait()
	s.turn <- struct{}{}
	defer s.release()
	if !gone {
		s.disconnect()
	}
	return nil
}

// disconnect closes every connection. The caller has the turn, or is alone.
func (s *Store) disconnect() {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.Timeout)
	defer cancel()
	s.hangUp()
	if s.lock != nil {
		s.lock.release(ctx)
	}
	if s.readers != nil {
		s.readers.Close()
	}
}

// begin waits for the turn and for the store to serve, and bounds the call. The
// caller calls end when the error is nil.
func (s *Store) begin(ctx context.Context) (bounded context.Context, end func(), err error) {
	for {
		if err := s.serving(ctx); err != nil {
			return nil, nil, err
		}
		select {
		case s.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, nil, s.notBegun(ctx.Err())
		}
		if s.up() {
			bounded, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
			return bounded, func() { cancel(); s.release() }, nil
		}
		s.release()
	}
}

func (s *Store) release() { <-s.turn }

func (s *Store) notBegun(err error) error {
	return fmt.Errorf("%s: %w: nothing was begun: %w", s.target.where, persist.ErrUnavailable, err)
}

// unavailable is an error of a call that has changed nothing.
func (s *Store) unavailable(err error) error {
	if errors.Is(err, persist.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%s: %w: %w", s.target.where, persist.ErrUnavailable, err)
}
