package postgres

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/postgres/pgtest"
	"github.com/twinsrv/twinsrv/snapshot"
)

// TestLateTakeHarmsNobody: a server that is killed while it takes the store has
// sent what takes it, and that arrives late. Until it has, nobody else gets the
// lock; so it never takes the store from a server that serves.
func TestLateTakeHarmsNobody(t *testing.T) {
	cluster, url := ownCluster(t)
	mustOpen(t, url, Config{}).Close()
	way := newLateWay(t, cluster.Address())
	via, err := pgtest.Through(way.listener.Addr().String(), url)
	require.NoError(t, err)
	ctx, kill := context.WithCancel(t.Context())
	killed := make(chan error, 1)
	go func() {
		s, err := Open(ctx, via, Config{})
		if err == nil {
			err = s.Close()
		}
		killed <- err
	}()
	<-way.held
	kill()
	require.Error(t, <-killed)

	_, err = Open(t.Context(), url, Config{LockTimeout: 100 * time.Millisecond})
	require.ErrorIs(t, err, ErrLocked)
	close(way.release)
	<-way.done
	s := mustOpen(t, url, Config{LockTimeout: 10 * time.Second})
	defer s.Close()
	for _, name := range []string{"a", "b"} {
		for _, o := range mustCommit(t, s, persist.Unit{
			Key:    persist.Key{Pod: "p", Name: name},
			Record: &snapshot.Record{Revision: 1, Changed: time.Now(), Codec: "json", State: []byte("{}")},
		}) {
			require.NoError(t, o.Err)
		}
	}
}

// lateWay passes on what goes to a server, until it sees the statement that
// takes the store come: that it holds until release is closed, and ends the
// connection then.
type lateWay struct {
	listener            net.Listener
	held, release, done chan struct{}
}

func newLateWay(t *testing.T, to string) *lateWay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	w := &lateWay{listener: l, held: make(chan struct{}), release: make(chan struct{}), done: make(chan struct{})}
	go func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			go pass(up, down, func([]byte) bool { return true })
			go w.watch(down, up)
		}
	}()
	return w
}

// watch passes on statements. A prepared one comes twice: parsed, and run.
func (w *lateWay) watch(down, up net.Conn) {
	parsed := false
	pass(down, up, func(b []byte) bool {
		if !parsed {
			parsed = bytes.Contains(b, []byte("UPDATE store SET epoch"))
			return true
		}
		close(w.held)
		<-w.release
		_, _ = up.Write(b)
		_, _ = up.Write([]byte{'X', 0, 0, 0, 4}) // goodbye: the server does what came before it first
		close(w.done)
		return false
	})
}

// pass copies until one side ends or f says no, and then closes both.
func pass(from, to net.Conn, f func([]byte) bool) {
	defer func() { _ = from.Close() }()
	defer func() { _ = to.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && f(buf[:n]) {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
			continue
		}
		if err != nil || n > 0 {
			return
		}
	}
}
