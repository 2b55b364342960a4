package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/twinsrv/twinsrv/persist"
)

const (
	minHealPause = 50 * time.Millisecond
	maxHealPause = 2 * time.Second
)

// Who may write is decided in the store row. Taking the store gives it a new
// epoch there, and each transaction that writes begins by checking its own under
// the row's lock. So when connect returns,
//
//   - whatever was begun under an earlier epoch is committed, and seen from
//     here on, or never will be: the row's lock waits for it, and what has not
//     locked the row yet finds another epoch;
//   - that holds for another server, which lost the advisory lock without
//     knowing and goes on, and for this one's own commit of which it never heard
//     again: a packet that arrives late changes nothing.
//
// From others it is taken by the lock's own connection (takeFirst): whatever that
// has sent is done before the lock is free for the next server. On another one
// it might come late, after its sender was killed, and take the store from a
// server that got the lock meanwhile.
//
// connect makes the writer's connection anew and takes the store again. The
// caller has the turn. It fails with ErrFenced when another server has taken the
// store since.
func (s *Store) connect(ctx context.Context) error {
	s.hangUp()
	c, err := s.target.connect(ctx, writerSession(s.cfg))
	if err != nil {
		return err
	}
	if err := s.takeStore(ctx, c, false); err != nil {
		return errors.Join(err, closeQuietly(c))
	}
	prepared, err := prepare(ctx, c)
	if err != nil {
		return errors.Join(err, closeQuietly(c))
	}
	second, err := s.connectSecond(ctx)
	if err != nil {
		return errors.Join(err, closeQuietly(c))
	}
	s.writer, s.second, s.prepared, s.used = c, second, prepared, time.Now()
	return nil
}

// hangUp closes the writer's connections.
func (s *Store) hangUp() {
	for _, c := range []*pgx.Conn{s.writer, s.second} {
		if c != nil {
			_ = closeQuietly(c)
		}
	}
	s.writer, s.second = nil, nil
}

// connectSecond makes the connection for the second halves. Its session holds a
// lock, by which evictSecond finds it.
func (s *Store) connectSecond(ctx context.Context) (*pgx.Conn, error) {
	c, err := s.target.connect(ctx, writerSession(s.cfg))
	if err != nil {
		return nil, err
	}
	if err = s.lockSecond(ctx, c); err == nil {
		_, err = prepare(ctx, c) // as the writer's
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the second connection: %w", err), closeQuietly(c))
	}
	return c, nil
}

// lockSecond takes the lock of the second halves' session. A server that had the
// store before, and does not know yet that it lost it, may have taken it since
// takeStore has evicted the last one: whose epoch counts evicts the other.
func (s *Store) lockSecond(ctx context.Context, c *pgx.Conn) error {
	for begin := time.Now(); ; {
		var got, mine bool
		err := c.QueryRow(ctx, `SELECT pg_try_advisory_lock($1), EXISTS (SELECT FROM store WHERE epoch = $2)`,
			s.target.lockKey("second"), s.epoch).Scan(&got, &mine)
		switch {
		case err != nil || got:
			return err
		case !mine:
			return errors.New("another server has taken the store meanwhile")
		case time.Since(begin) >= s.cfg.Timeout*4/5:
			return errors.New("a session of another server keeps its lock, and cannot be ended: stop that server")
		}
		s.evictSecond(ctx, c)
		if err := pause(ctx, lockPause); err != nil {
			return err
		}
	}
}

// evictSecond is evict for the session of the last second halves, unless that is
// this writer's.
func (s *Store) evictSecond(ctx context.Context, c *pgx.Conn) {
	own := uint32(0)
	if s.second != nil {
		own = s.second.PgConn().PID()
	}
	_, _ = c.Exec(ctx, `
		SELECT pg_terminate_backend(pid) FROM pg_locks
		WHERE locktype = 'advisory' AND granted AND objsubid = 1
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND ((classid::bigint << 32) | objid::bigint) = $1 AND pid <> $2`, s.target.lockKey("second"), int32(own))
}

// prepare prepares the statements of commits on a connection.
func prepare(ctx context.Context, c *pgx.Conn) (map[string]*pgconn.StatementDescription, error) {
	prepared := make(map[string]*pgconn.StatementDescription)
	for name, sql := range statements() {
		var err error
		if prepared[name], err = c.Prepare(ctx, name, sql); err != nil {
			if pg := serverError(err); pg != nil && strings.HasPrefix(pg.Code, "42") { // no such table, column, right
				err = fmt.Errorf("%w: %w", ErrSchema, err)
			}
			return nil, err
		}
	}
	return prepared, nil
}

// takeFirst takes the store from whoever had it.
func (s *Store) takeFirst(ctx context.Context) error { return s.takeStore(ctx, s.lock.conn, true) }

func (s *Store) takeStore(ctx context.Context, c *pgx.Conn, first bool) error {
	me, err := identify(ctx, c)
	if err != nil {
		return err
	}
	// A transaction that the last writer has left half sent would hold the row, and
	// what it has written.
	var pid *int32
	var began *time.Time
	err = c.QueryRow(ctx, `SELECT pid, began FROM store WHERE $2 OR instance = $1`, s.instance, first).Scan(&pid, &began)
	if err == nil {
		s.evictSecond(ctx, c)
	}
	if err == nil && pid != nil && began != nil && *pid != me.pid {
		evict(ctx, c, identity{*pid, *began})
	}
	pid, began = &me.pid, &me.began
	if first {
		pid, began = nil, nil // it is no writer's session that might leave something behind
	}
	var position int64
	err = c.QueryRow(ctx, `
		UPDATE store SET epoch = epoch + 1, instance = $1, holder = $2, pid = $4, began = $5 WHERE $3 OR instance = $1
		RETURNING epoch, position`, s.instance, s.holder, first, pid, began).Scan(&s.epoch, &position)
	if !errors.Is(err, pgx.ErrNoRows) {
		s.next = uint64(position) + 1
		return err
	}
	var holder string
	if err := c.QueryRow(ctx, `SELECT holder FROM store`).Scan(&holder); err != nil {
		return fmt.Errorf("%w: the table store has lost its row: %w", ErrSchema, err)
	}
	return fmt.Errorf("%w: %s; what this server knows may be old: restart it", ErrFenced, holder)
}

// outage is a time in which the store does not serve.
type outage struct {
	cause error
	kick  chan struct{} // makes the healer try at once

	// Guarded by Store.mu.
	err   error         // of the last try
	tried chan struct{} // closed when the try that is next, or runs, has ended
}

// fail takes the store out of service and sees to its healing. It may be called
// with the turn or without.
func (s *Store) fail(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outage != nil || s.gone || s.fenced != nil {
		return
	}
	o := &outage{cause: cause, kick: make(chan struct{}, 1), tried: make(chan struct{})}
	s.outage = o
	s.jobs.Go(func() { s.heal(o) })
}

// lockLost is called by the watch when the lock's connection breaks.
func (s *Store) lockLost() { s.fail(errors.New("the connection that holds the lock was lost")) }

// heal tries to take the store again until it succeeds, or never can.
func (s *Store) heal(o *outage) {
	s.cfg.Logger.Warn("the store lost its connection and takes it up again", "store", s.target.where, "error", o.cause)
	for wait := minHealPause; ; wait = min(2*wait, maxHealPause) {
		err := s.again(s.ctx)
		s.mu.Lock()
		if err == nil && !s.lock.alive() {
			err = errors.New("the lock's connection was lost once more") // what its watch said was not heard
		}
		switch {
		case err == nil:
			s.outage = nil
		case errors.Is(err, ErrFenced):
			s.outage, s.fenced = nil, s.unavailable(err)
		}
		ended := s.outage == nil
		o.err = err
		close(o.tried)
		o.tried = make(chan struct{})
		s.mu.Unlock()
		switch {
		case err == nil:
			s.cfg.Logger.Info("the store serves again", "store", s.target.where)
		case ended:
			s.cfg.Logger.Error("the store is lost to another server", "store", s.target.where, "error", err)
		case s.ctx.Err() == nil:
			s.cfg.Logger.Warn("the store cannot be reached yet", "store", s.target.where, "error", err, "next_try_in", wait)
		}
		if ended || !s.nextTry(o, wait) {
			return
		}
	}
}

// nextTry waits for the time of the next try, or for somebody to ask for it. It
// is false when the store is closed.
func (s *Store) nextTry(o *outage, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-o.kick:
	case <-s.ctx.Done():
		return false
	}
	return true
}

// again takes the store once more.
func (s *Store) again(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		defer s.release()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	s.readers.Reset()
	if err := s.connect(ctx); err != nil {
		return err
	}
	if s.lock.alive() {
		return nil
	}
	evict(ctx, s.writer, s.lock.id)
	l, err := s.target.acquire(ctx, s.cfg, max(s.cfg.LockTimeout, 0))
	if err != nil {
		return err
	}
	s.lock.release(ctx)
	s.lock = l
	l.watch(s.lockLost)
	// Between the loss and now another server may have had the lock.
	return s.takeStore(ctx, s.writer, false)
}

// up says whether the store serves at this moment.
func (s *Store) up() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.gone && s.fenced == nil && s.outage == nil
}

// serving returns nil when the store serves. It waits for the first try of an
// outage to end, and fails at once in a longer one.
func (s *Store) serving(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return s.notBegun(err)
	}
	return s.await(ctx, false)
}

// await waits for the try to heal that runs, or, when the last one has failed,
// for the next if another is set.
func (s *Store) await(ctx context.Context, another bool) error {
	s.mu.Lock()
	o := s.outage
	switch {
	case s.gone:
		s.mu.Unlock()
		return fmt.Errorf("%s: %w: it was closed", s.target.where, persist.ErrUnavailable)
	case s.fenced != nil:
		defer s.mu.Unlock()
		return s.fenced
	case o == nil:
		s.mu.Unlock()
		return nil
	}
	tried, err := o.tried, o.err
	s.mu.Unlock()
	if err != nil && !another {
		return s.unavailable(fmt.Errorf("%w, after: %w", err, o.cause))
	}
	if another {
		select {
		case o.kick <- struct{}{}:
		default:
		}
	}
	select {
	case <-tried:
	case <-ctx.Done():
		return s.notBegun(ctx.Err())
	case <-s.ctx.Done():
	}
	return s.await(ctx, false)
}

// Reopen waits for the store to serve again after a failure, and fails when the
// next try to reach the server does. It fails with ErrFenced, for good, when
// another server has taken the store over. On a store that serves it does
// nothing.
func (s *Store) Reopen(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return s.notBegun(err)
	}
	return s.await(ctx, true)
}
