package server_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/server"
)

func TestTourAndRestart(t *testing.T) {
	data := filepath.Join(t.TempDir(), "deep", "data")
	p := start(t, data)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	p.must(200, "POST", "/v1/pods/docs/entities/tower%2F3/messages/merge", `{"celsius":21.5,"big":2523232323232323232}`)
	p.must(200, "PATCH", "/v1/pods/docs/entities/tower%2F3/state", `{"celsius":1.222e-11}`)
	p.must(201, "PUT", "/v1/pods/docs/entities/gone/state", `{}`)
	p.must(204, "DELETE", "/v1/pods/docs/entities/gone", "")
	p.must(201, "PUT", "/v1/pods/lazy", `{"type":"document","durability":"async:1h"}`)
	p.must(201, "PUT", "/v1/pods/lazy/entities/a/state", `{"n":1}`)
	p.must(200, "PUT", "/v1/pods/lazy/entities/a/state", `{"n":2}`) // not durable until the clean end
	before := p.must(200, "GET", "/v1/pods/docs/entities/tower%2F3", "")
	require.Contains(t, before, `"state":{"big":2523232323232323232,"celsius":1.222e-11}`)
	p.terminate()

	info, err := os.Stat(data)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	p = start(t, data)
	require.Equal(t, before, p.must(200, "GET", "/v1/pods/docs/entities/tower%2F3", ""))
	p.must(404, "GET", "/v1/pods/docs/entities/gone", "")
	require.Equal(t, `{"n":2}`, p.must(200, "GET", "/v1/pods/lazy/entities/a/state", ""))
	require.Contains(t, p.must(200, "GET", "/v1/pods", ""), `"name":"docs"`)
	p.must(200, "POST", "/v1/pods/docs/entities/tower%2F3/messages/set", `{"pointer":"/celsius","value":3}`)
	p.terminate()
}

func TestSecondProcessIsRefused(t *testing.T) {
	data := t.TempDir()
	p := start(t, data)
	out := fails(t, "serve", "--data", data, "--listen", "127.0.0.1:0")
	require.Contains(t, out, "the store is in use")
	require.Contains(t, out, data)
	p.must(200, "GET", "/healthz", "")
	p.terminate()
}

func TestBadStarts(t *testing.T) {
	dir := t.TempDir()
	require.Contains(t, fails(t, "--data", dir, "--listen", "0.0.0.0:0"), "--insecure")
	require.Contains(t, fails(t, "--data", dir, "--listen", ":0"), "--insecure")
	require.Contains(t, fails(t, "--data", dir, "--listen", "nonsense"), "host:port")
	require.Contains(t, fails(t, "--data", dir, "--bogus"), "--bogus")
	t.Run("environment", func(t *testing.T) {
		t.Setenv("TWINSRV_DATA", filepath.Join(dir, "none"))
		t.Setenv("TWINSRV_LISTEN", "10.0.0.1:0")
		require.Contains(t, fails(t, "serve"), "10.0.0.1:0")
		require.NoDirExists(t, filepath.Join(dir, "none"), "nothing is made for a start that is refused")
		t.Setenv("TWINSRV_DATA", "/dev/null")
		t.Setenv("TWINSRV_LISTEN", "127.0.0.1:0")
		require.Contains(t, fails(t), "/dev/null")
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	taken := fails(t, "--data", dir, "--listen", l.Addr().String())
	require.Contains(t, taken, "address already in use")
	require.Contains(t, taken, "another address with --listen")
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("x"), 0o600))
	require.Contains(t, fails(t, "--data", plain, "--listen", "127.0.0.1:0"), plain)
}

func TestNoiseInTheFile(t *testing.T) {
	data := t.TempDir()
	p := start(t, data)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	for i := range 20 {
		p.must(201, "PUT", entityOf(i), `{"text":"`+strings.Repeat("x", 2000)+`"}`)
	}
	p.terminate()
	path := filepath.Join(data, "twinsrv.db")
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	noise := bytes.Repeat([]byte("\xa5\x5a\xff\x01noise!!!"), 4096)[:4096]
	refused := 0
	for page := range len(whole) / 4096 {
		spoiled := bytes.Clone(whole)
		copy(spoiled[page*4096:], noise)
		require.NoError(t, os.WriteFile(path, spoiled, 0o600))
		if openAndClose(t, data) != nil {
			refused++
		}
	}
	require.Positive(t, refused)
	copy(whole, bytes.Repeat(noise, 2)) // both meta pages
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	require.Contains(t, fails(t, "--data", data, "--listen", "127.0.0.1:0"), path)
}

func openAndClose(t *testing.T, data string) error {
	s, err := server.Open(t.Context(), server.Config{Data: data})
	if err != nil {
		return err
	}
	return s.Close(t.Context())
}

func TestTerminateUnderLoad(t *testing.T) {
	data := t.TempDir()
	p := start(t, data)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	w := write(p, 8)
	require.Eventually(t, func() bool { return w.count(200, 201) > 100 }, patience, tick)
	p.terminate()
	w.end()
	require.Zero(t, w.count(500), "%v", w.statuses)
	p = start(t, data)
	w.check(t, p)
	p.terminate()
}

func TestKillKeepsWhatWasAcknowledged(t *testing.T) {
	data := t.TempDir()
	p := start(t, data)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	for range 3 {
		w := write(p, 8)
		require.Eventually(t, func() bool { return w.count(200, 201) > 100 }, patience, tick)
		p.kill()
		w.end()
		p = start(t, data)
		w.check(t, p)
	}
	p.terminate()
}

// A request that does not end holds the end up, within bounds; a second signal
// does not wait for it.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	p := start(t, t.TempDir())
	p.must(200, "GET", "/healthz", "")
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "PUT /v1/pods/docs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n")
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 100)) // it waits for the body now
	require.NoError(t, err)
	p.signal(syscall.SIGTERM)
	require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), "msg=stopping") }, patience, tick)
	require.Eventually(t, func() bool {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-p.exited:
			p.exited <- err
			return true
		default:
			return false
		}
	}, 3e9, tick)
	require.False(t, p.cmd.ProcessState.Success())
}

// lamp is a typed entity.
type lamp struct {
	On bool `json:"on"`
}

type flip struct{}

func lamps() entity.Type[lamp] {
	return entity.Type[lamp]{Name: "lamps", Handlers: entity.Handlers[lamp]{
		"flip": entity.On(func(_ *entity.Context, l *lamp, _ flip) error { l.On = !l.On; return nil }),
	}}
}

func TestRunServesTypedPodsAndThenReadOnly(t *testing.T) {
	data := t.TempDir()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	// serve runs a server around f.
	serve := func(f func(url string), definitions ...entity.Definition) (log string) {
		var b output
		ctx, cancel := context.WithCancel(t.Context())
		ready := make(chan net.Addr, 1)
		ended := make(chan error, 1)
		go func() {
			ended <- server.Run(ctx, server.Config{
				Data: data, Listen: "127.0.0.1:0", Definitions: definitions, Logger: slog.New(slog.NewTextHandler(&b, nil)),
				Ready: func(a net.Addr) { ready <- a },
			})
		}()
		f("http://" + (<-ready).String())
		client.CloseIdleConnections()
		cancel()
		require.NoError(t, <-ended)
		return b.String()
	}
	post := func(url string) int {
		resp, err := client.Post(url+"/v1/pods/lamps/entities/hall/messages/flip", "application/json", nil)
		require.NoError(t, err)
		resp.Body.Close()
		return resp.StatusCode
	}
	log := serve(func(url string) { require.Equal(t, 200, post(url)) }, lamps())
	require.NotContains(t, log, "read-only")
	log = serve(func(url string) {
		require.Equal(t, 409, post(url))
		resp, err := client.Get(url + "/v1/pods/lamps/entities/hall/state")
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, `{"on":true}`, string(body))
	})
	require.Regexp(t, `level=WARN .*read-only.*lamps`, log)
}

// An entity whose handler hangs keeps the end no longer than Drain.
func TestCloseIsBounded(t *testing.T) {
	release := make(chan struct{})
	hang := entity.Type[lamp]{Name: "lamps", Handlers: entity.Handlers[lamp]{
		"flip": entity.On(func(*entity.Context, *lamp, flip) error { <-release; return nil }),
	}}
	dir := t.TempDir()
	s, err := server.Open(t.Context(), server.Config{Data: dir, Definitions: []entity.Definition{hang}})
	require.NoError(t, err)
	p, err := s.Pods().Pod("lamps")
	require.NoError(t, err)
	require.NoError(t, p.Tell("hall", flip{}))
	ctx, cancel := context.WithTimeout(t.Context(), shortDrain)
	defer cancel()
	require.Error(t, s.Close(ctx))
	require.Error(t, s.Close(t.Context()), "the first answer stays")
	close(release)
	require.Eventually(t, func() bool {
		store, err := server.OpenStore(t.Context(), "bolt:"+dir, nil)
		return err == nil && store.Close() == nil
	}, 20*time.Second, time.Millisecond, "nobody waits for the store, and it is closed all the same")
}

func TestOpenServesWithoutAListener(t *testing.T) {
	s, err := server.Open(t.Context(), server.Config{Data: t.TempDir(), Definitions: []entity.Definition{lamps()}})
	require.NoError(t, err)
	_, err = server.Open(t.Context(), server.Config{Data: filepath.Join(t.TempDir(), "x"), Definitions: []entity.Definition{entity.Document{Name: "BAD"}}})
	require.ErrorIs(t, err, entity.ErrDefinition)
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, httptest.NewRequest("POST", "http://localhost/v1/pods/lamps/entities/a/messages/flip", nil))
	require.Equal(t, 200, rec.Code, rec.Body)
	require.NoError(t, s.Close(t.Context()))
}
