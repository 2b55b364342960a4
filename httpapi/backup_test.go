package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// backuper is a store whose backup is what a test says.
type backuper struct {
	persist.PersistenceService
	write func(ctx context.Context, w io.Writer) error
}

func (b *backuper) Backup(ctx context.Context, w io.Writer) error { return b.write(ctx, w) }

// bare is a store without abilities.
type bare struct{ persist.PersistenceService }

func ofStore(kind string) option { return func(c *httpapi.Config, _ *pod.Config) { c.Store = kind } }

func TestBackup(t *testing.T) {
	mem := persisttest.NewMemory()
	whole := bytes.Repeat([]byte("0123456789abcdef"), 30_000) // several parts
	b := &backuper{PersistenceService: mem}
	w := newWorldIn(t, mem, b, true, ofStore("bolt"))
	b.write = func(_ context.Context, to io.Writer) error {
		n, err := to.Write(whole)
		require.Equal(t, len(whole), n)
		return err
	}
	a := w.post("/v1/store/backup", ``).is(200)
	require.Equal(t, whole, []byte(a.body))
	require.Equal(t, "application/octet-stream", a.header.Get("Content-Type"))
	require.Regexp(t, `^attachment; filename="twinsrv-\d{8}T\d{6}Z\.bolt\.backup"$`, a.header.Get("Content-Disposition"))

	b.write = func(context.Context, io.Writer) error { return nil }
	require.Empty(t, w.post("/v1/store/backup", ``).is(200).body)

	b.write = func(context.Context, io.Writer) error { return persist.ErrUnavailable }
	w.post("/v1/store/backup", ``).is(503, "store_unavailable")
	b.write = func(context.Context, io.Writer) error { return errors.New("no room") }
	w.post("/v1/store/backup", ``).is(500, "internal")
	w.get("/v1/store/backup").is(405, "method_not_allowed")
}

// A backup that fails half-way has no regular end.
func TestBackupCutOff(t *testing.T) {
	mem := persisttest.NewMemory()
	b := &backuper{PersistenceService: mem, write: func(_ context.Context, to io.Writer) error {
		_, _ = to.Write(make([]byte, 200_000))
		return errors.New("no more")
	}}
	w := newWorldIn(t, mem, b, true)
	resp, err := w.srv.Client().Post(w.srv.URL+"/v1/store/backup", "", nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	_, err = io.ReadAll(resp.Body)
	require.Error(t, err)
	w.get("/healthz").is(200)
}

// One backup is written at a time, and a client that goes away ends it.
func TestBackupsOneByOne(t *testing.T) {
	mem := persisttest.NewMemory()
	began := make(chan struct{})
	b := &backuper{PersistenceService: mem, write: func(ctx context.Context, _ io.Writer) error {
		began <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}}
	w := newWorldIn(t, mem, b, true)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.srv.URL+"/v1/store/backup", nil)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		resp, err := w.srv.Client().Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		ended <- err
	}()
	<-began
	busy := w.post("/v1/store/backup", ``).is(503, "busy")
	require.Equal(t, "1", busy.header.Get("Retry-After"))
	cancel()
	require.Error(t, <-ended)
	b.write = func(context.Context, io.Writer) error { return nil }
	require.Eventually(t, func() bool { return w.post("/v1/store/backup", ``).status == 200 }, eventually, tick)
}

// A client that takes nothing is cut off, so that others get their turn.
func TestBackupOfStandingClient(t *testing.T) {
	mem := persisttest.NewMemory()
	ended := make(chan error, 1)
	b := &backuper{PersistenceService: mem, write: func(_ context.Context, to io.Writer) error {
		_, err := to.Write(make([]byte, 64<<20)) // more than the network holds
		ended <- err
		return err
	}}
	w := newWorldIn(t, mem, b, true)
	w.api.SetPatience(100 * time.Millisecond)
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.srv.URL, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /v1/store/backup HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	select {
	case err := <-ended:
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	case <-time.After(eventually):
		t.Fatal("it is not cut off")
	}
	b.write = func(context.Context, io.Writer) error { return nil }
	require.Eventually(t, func() bool { return w.post("/v1/store/backup", ``).status == 200 }, eventually, tick)
}

// A backup may take longer than the server gives other requests.
func TestBackupTakesItsTime(t *testing.T) {
	mem := persisttest.NewMemory()
	b := &backuper{PersistenceService: mem, write: func(ctx context.Context, to io.Writer) error {
		for range 5 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(300 * time.Millisecond):
			}
			if _, err := to.Write([]byte("part ")); err != nil {
				return err
			}
		}
		return nil
	}}
	w := newWorldIn(t, mem, b, true)
	hasty := httptest.NewUnstartedServer(w.api)
	hasty.Config.ReadTimeout, hasty.Config.WriteTimeout = time.Second, time.Second
	hasty.Start()
	defer hasty.Close()
	resp, err := hasty.Client().Post(hasty.URL+"/v1/store/backup", "", nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "part part part part part ", string(body))
}

func TestNoBackup(t *testing.T) {
	for kind, advice := range map[string]string{"postgres": "pg_dump", "memory": "in memory", "": "its own means"} {
		mem := persisttest.NewMemory()
		w := newWorldIn(t, mem, bare{mem}, true, ofStore(kind))
		require.Contains(t, w.post("/v1/store/backup", ``).is(501, "no_backup").body, advice)
		w.close()
	}
}

func TestHealth(t *testing.T) {
	w := newWorld(t, ofStore("memory"))
	w.docs()
	w.put(room+"/state", `{}`).is(201)
	require.Equal(t, `{"status":"ok","store":"memory","version":"0","pods":2,"active":1,"quarantined":0}`, w.get("/healthz").is(200).body)
}
