package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/client"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// gauge is the typed entity of these tests.
type gauge struct {
	Total int `json:"total"`
}

type (
	add struct {
		N int `json:"n"`
	}
	take struct {
		N int `json:"n"`
	}
	total struct{}
	stall struct{}
	boom  struct{}
)

// world is the real API over pods on a store in memory, served on a real port
// behind something that may spoil requests and answers.
type world struct {
	t       *testing.T
	mem     *persisttest.Memory
	pods    *pod.Pods
	api     *httpapi.API
	srv     *httptest.Server
	c       *client.Client
	release chan struct{}

	mu    sync.Mutex
	spoil []spoiler // for the next requests, one each
	seen  []*http.Request
}

// spoiler serves a request in its own way.
type spoiler func(w http.ResponseWriter, r *http.Request, api http.Handler)

type option func(*httpapi.Config, *client.Config, *pod.Config)

func newWorld(t *testing.T, options ...option) *world {
	t.Helper()
	w := &world{t: t, mem: persisttest.NewMemory(), release: make(chan struct{})}
	var cfg httpapi.Config
	ours := client.Config{Pause: time.Millisecond, MaxPause: 5 * time.Millisecond}
	var podCfg pod.Config
	for _, o := range options {
		o(&cfg, &ours, &podCfg)
	}
	sys := actor.NewSystem("client", actor.Config{})
	var err error
	w.pods, err = pod.Open(sys, w.mem, podCfg)
	require.NoError(t, err)
	_, err = pod.Start(w.pods, entity.Type[gauge]{
		Name: "gauges",
		Handlers: entity.Handlers[gauge]{
			"add": entity.On(func(_ *entity.Context, g *gauge, m add) error { g.Total += m.N; return nil }),
			"take": entity.Reply(func(_ *entity.Context, g *gauge, m take) (int, error) {
				if g.Total < m.N {
					return 0, entity.Rejectf("only %d are there", g.Total)
				}
				g.Total -= m.N
				return g.Total, nil
			}),
			"total": entity.Query(func(_ *entity.Context, g *gauge, _ total) (int, error) { return g.Total, nil }),
			"stall": entity.On(func(_ *entity.Context, g *gauge, _ stall) error { <-w.release; g.Total++; return nil }),
			"boom":  entity.On(func(*entity.Context, *gauge, boom) error { return errors.New("on purpose") }),
		},
	})
	require.NoError(t, err)
	w.api = httpapi.New(w.pods, cfg)
	w.srv = httptest.NewServer(http.HandlerFunc(w.serve))
	w.c, err = client.New(w.srv.URL+"/", ours)
	require.NoError(t, err)
	t.Cleanup(func() {
		w.let()
		w.c.Close()
		w.api.EndStreams()
		w.srv.CloseClientConnections()
		w.srv.Close()
		w.api.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, w.pods.Close(ctx))
		require.NoError(t, sys.Stop(ctx))
	})
	return w
}

// let lets those that stall go on.
func (w *world) let() {
	select {
	case <-w.release:
	default:
		close(w.release)
	}
}

func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.seen = append(w.seen, r.Clone(context.Background()))
	var s spoiler
	if len(w.spoil) > 0 {
		s, w.spoil = w.spoil[0], w.spoil[1:]
	}
	w.mu.Unlock()
	if s == nil {
		w.api.ServeHTTP(rw, r)
		return
	}
	s(rw, r, w.api)
}

// next has the next requests served so, and forgets those so far.
func (w *world) next(s ...spoiler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spoil, w.seen = s, nil
}

// requests returns the requests since next.
func (w *world) requests() []*http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen
}

// docs declares the pod of documents.
func (w *world) docs() {
	w.t.Helper()
	_, _, err := w.c.PutPod(w.t.Context(), "docs", client.Definition{})
	require.NoError(w.t, err)
}

// damage makes an entity unreadable.
func (w *world) damage(pod, name string) {
	w.t.Helper()
	p, err := w.pods.Pod(pod)
	require.NoError(w.t, err)
	_, err = p.Ask(w.t.Context(), name, entity.Passivate())
	require.NoError(w.t, err)
	require.Eventually(w.t, func() bool { // the answer comes a moment earlier
		_, there := p.Resident(name)
		return !there
	}, 10*time.Second, time.Millisecond)
	w.mem.Damage(persist.Key{Pod: pod, Name: name})
}

// unheard has a request handled, and loses the answer.
func unheard(_ http.ResponseWriter, r *http.Request, api http.Handler) {
	api.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// unsent loses a request.
func unsent(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }

// says answers without a server behind it.
func says(status int, body string, headers ...string) spoiler {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// cutAfter lets an answer of so many bytes through, and then cuts the connection.
func cutAfter(bytes int) spoiler {
	return func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		api.ServeHTTP(&cutting{ResponseWriter: w, left: bytes}, r)
		panic(http.ErrAbortHandler)
	}
}

type cutting struct {
	http.ResponseWriter
	left int
}

func (c *cutting) Write(b []byte) (int, error) {
	if len(b) > c.left {
		_, _ = c.ResponseWriter.Write(b[:c.left])
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(b)
	return c.ResponseWriter.Write(b)
}

func (c *cutting) Unwrap() http.ResponseWriter { return c.ResponseWriter }
