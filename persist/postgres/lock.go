package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

// lockPause is the wait between two tries to get the lock.
const lockPause = 50 * time.Millisecond

// serverLock keeps other servers out, for as long as its connection lives: the
// server's advisory lock is its session's. It is not what makes writing safe;
// that is the epoch (see take.go).
type serverLock struct {
	key  int64
	conn *pgx.Conn
	id   identity

	stop   context.CancelFunc // ends the watch
	broken chan struct{}      // closed when the connection is found broken
	ended  chan struct{}      // closed when the watch has ended
}

// acquire takes the lock, waiting for at most wait. It fails with ErrLocked.
func (t target) acquire(ctx context.Context, cfg Config, wait time.Duration) (*serverLock, error) {
	c, err := t.connect(ctx, baseSession(cfg))
	if err != nil {
		return nil, err
	}
	l := &serverLock{key: t.lockKey("store"), conn: c}
	if l.id, err = identify(ctx, c); err != nil {
		return nil, errors.Join(err, closeQuietly(c))
	}
	for begin := time.Now(); ; {
		var got bool
		if err = c.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, l.key).Scan(&got); err != nil || got {
			break
		}
		if time.Since(begin) >= wait {
			err = fmt.Errorf("%w: %s", ErrLocked, l.holder(ctx))
			break
		}
		if err = pause(ctx, lockPause); err != nil {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, closeQuietly(c))
	}
	return l, nil
}

// holder says who has the lock and what to do about it.
func (l *serverLock) holder(ctx context.Context) string {
	var pid int
	var client, since string
	err := l.conn.QueryRow(ctx, `
		SELECT l.pid, coalesce(host(a.client_addr), 'this machine'), coalesce(a.backend_start::text, 'an unknown time')
		FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
			AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND ((l.classid::bigint << 32) | l.objid::bigint) = $1`, l.key).Scan(&pid, &client, &since)
	if err != nil {
		return "it let go of it just now, or cannot be seen; try again"
	}
	who := "a server that has not said its name"
	var holder string
	if l.conn.QueryRow(ctx, `SELECT holder FROM store`).Scan(&holder) == nil && holder != "" {
		who = holder
	}
	return fmt.Sprintf("%s (session %d from %s, connected since %s); stop that server, or end its session by SELECT pg_terminate_backend(%d)",
		who, pid, client, since, pid)
}

// watch waits on the connection until it breaks. Nothing else may use the
// connection before unwatch.
func (l *serverLock) watch(lost func()) {
	ctx, stop := context.WithCancel(context.Background())
	l.stop, l.broken, l.ended = stop, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(l.ended)
		for {
			_, err := l.conn.WaitForNotification(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				close(l.broken)
				lost()
				return
			}
		}
	}()
}

// alive says whether the watch has not found the connection broken.
func (l *serverLock) alive() bool {
	select {
	case <-l.broken:
		return false
	default:
		return true
	}
}

// release ends the watch, gives the lock back if the server can still be
// reached, and closes the connection.
func (l *serverLock) release(ctx context.Context) {
	if l.stop != nil {
		l.stop()
		<-l.ended
	}
	if !l.conn.IsClosed() {
		_, _ = l.conn.Exec(ctx, `SELECT pg_advisory_unlock($1)`, l.key) // closing gives it back too, a little later
	}
	_ = closeQuietly(l.conn)
}

// closeQuietly closes a connection and waits for as long as that needs on a
// network that works.
func closeQuietly(c *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = c.Close(ctx) // it may be broken already
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// whoami names this server for the people who meet its lock.
func whoami(now time.Time) string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed host"
	}
	return fmt.Sprintf("process %d on %s, serving since %s", os.Getpid(), host, now.UTC().Format(time.RFC3339))
}
