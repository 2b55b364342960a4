package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// gauge is the typed entity of these tests.
type gauge struct {
	Total int            `json:"total"`
	By    map[string]int `json:"by"`
}

type (
	add struct {
		N int `json:"n"`
	}
	take struct {
		N int `json:"n"`
	}
	total  struct{}
	refuse struct{}
	fail   struct{}
	boom   struct{}
	stall  struct{}
	odd    struct{}
)

type takeReply struct {
	Left int     `json:"left"`
	Text string  `json:"text"`
	Half float64 `json:"half"`
}

// gauges blocks in "stall" until release is closed.
func gauges(release <-chan struct{}) entity.Type[gauge] {
	return entity.Type[gauge]{
		Name:   "gauges",
		Create: entity.Creation{By: []string{"add", "refuse", "fail", "stall"}},
		Handlers: entity.Handlers[gauge]{
			"add": entity.On(func(_ *entity.Context, g *gauge, m add) error { g.Total += m.N; return nil }),
			"take": entity.Reply(func(_ *entity.Context, g *gauge, m take) (takeReply, error) {
				g.Total -= m.N
				return takeReply{Left: g.Total, Text: "<a&b>", Half: 0.5}, nil
			}),
			"total": entity.Query(func(_ *entity.Context, g *gauge, _ total) (int, error) { return g.Total, nil }),
			"refuse": entity.On(func(_ *entity.Context, g *gauge, _ refuse) error {
				g.Total = -1
				return entity.Rejectf("not today")
			}),
			"fail": entity.On(func(_ *entity.Context, g *gauge, _ fail) error {
				g.Total = -1
				// A handler may fail with anything, and it is its failure.
				return errors.Join(entity.ErrNotFound, errors.New("on purpose"))
			}),
			"boom":  entity.On(func(_ *entity.Context, g *gauge, _ boom) error { g.Total = -1; panic("on purpose") }),
			"stall": entity.On(func(_ *entity.Context, g *gauge, _ stall) error { <-release; g.Total++; return nil }),
			"odd":   entity.Reply(func(*entity.Context, *gauge, odd) (float64, error) { return math.NaN(), nil }),
		},
	}
}

// world is an API over pods on a store in memory, served on a real port.
type world struct {
	t        testing.TB
	mem      *persisttest.Memory
	store    *persisttest.FaultStore
	sys      *actor.System
	pods     *pod.Pods
	api      *httpapi.API
	srv      *httptest.Server
	release  chan struct{}
	contract *contract
	last     string // what was asked last, for messages
}

type option func(*httpapi.Config, *pod.Config)

func newWorld(t testing.TB, options ...option) *world {
	t.Helper()
	return newWorldOn(t, persisttest.NewMemory(), true, options...)
}

func newWorldOn(t testing.TB, mem *persisttest.Memory, typed bool, options ...option) *world {
	t.Helper()
	return newWorldIn(t, mem, nil, typed, options...)
}

// newWorldIn is newWorldOn whose pods see another store in place of the one
// that fails on request; nil leaves it.
func newWorldIn(t testing.TB, mem *persisttest.Memory, in persist.PersistenceService, typed bool, options ...option) *world {
	t.Helper()
	w := &world{t: t, mem: mem, store: persisttest.NewFaultStore(mem), release: make(chan struct{})}
	if in == nil {
		in = w.store
	}
	var cfg httpapi.Config
	var podCfg pod.Config
	for _, o := range options {
		o(&cfg, &podCfg)
	}
	w.sys = actor.NewSystem("http", actor.Config{})
	var err error
	w.pods, err = pod.Open(w.sys, in, podCfg)
	require.NoError(t, err)
	if typed {
		_, err = pod.Start(w.pods, gauges(w.release))
		require.NoError(t, err)
	}
	w.api = httpapi.New(w.pods, cfg)
	w.srv = httptest.NewUnstartedServer(w.api)
	w.srv.Listener = httpapi.Listener(w.srv.Listener)
	w.srv.Start()
	t.Cleanup(w.close)
	w.contract = contractOf(t, w.get("/openapi.json").body)
	return w
}

func (w *world) close() {
	w.stopStalling()
	w.srv.Close()
	w.srv.Client().CloseIdleConnections()
	w.api.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = w.pods.Close(ctx)
	require.NoError(w.t, w.sys.Stop(ctx))
}

func (w *world) stopStalling() {
	select {
	case <-w.release:
	default:
		close(w.release)
	}
}

// answer is what came back.
type answer struct {
	w      *world
	status int
	header http.Header
	body   string
	code   string
}

// do sends a request whose path goes over the wire as it is given.
func (w *world) do(method, target, body string, headers ...string) answer {
	w.t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
		if !slices.Contains(headers, "Content-Type") {
			headers = append(headers, "Content-Type", "application/json")
		}
	}
	return w.send(method, target, r, headers...)
}

// emptyHeader is the value of a header that is sent and empty.
const emptyHeader = "(empty)"

func (w *world) send(method, target string, body io.Reader, headers ...string) answer {
	w.t.Helper()
	w.last = method + " " + target
	var sent bytes.Buffer
	if body != nil {
		body = io.TeeReader(body, &sent)
	}
	req, err := http.NewRequest(method, w.srv.URL, body)
	require.NoError(w.t, err)
	path, query, _ := strings.Cut(target, "?")
	req.URL = &url.URL{Scheme: "http", Host: req.URL.Host, Opaque: path, RawQuery: query}
	for i := 0; i < len(headers); i += 2 {
		switch headers[i] {
		case "Host":
			req.Host = headers[i+1]
		default:
			switch v := headers[i+1]; v {
			case "": // as if the header had not been named
			case emptyHeader:
				req.Header.Add(headers[i], "")
			default:
				req.Header.Add(headers[i], v)
			}
		}
	}
	resp, err := w.srv.Client().Do(req)
	require.NoError(w.t, err, w.last)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	a := answer{w: w, status: resp.StatusCode, header: resp.Header, body: string(data)}
	w.contract.check(w, req, sent.Bytes(), path, &a)
	return a
}

func (w *world) get(target string, headers ...string) answer {
	w.t.Helper()
	return w.do(http.MethodGet, target, "", headers...)
}

func (w *world) put(target, body string, headers ...string) answer {
	w.t.Helper()
	return w.do(http.MethodPut, target, body, headers...)
}

func (w *world) post(target, body string, headers ...string) answer {
	w.t.Helper()
	return w.do(http.MethodPost, target, body, headers...)
}

func (w *world) patch(target, body string, headers ...string) answer {
	w.t.Helper()
	return w.do(http.MethodPatch, target, body, headers...)
}

func (w *world) delete(target string, headers ...string) answer {
	w.t.Helper()
	return w.do(http.MethodDelete, target, "", headers...)
}

// is checks an answer's status, and code if there is one.
func (a answer) is(status int, code ...string) answer {
	a.w.t.Helper()
	require.Equal(a.w.t, status, a.status, "%s: %s", a.w.last, a.body)
	if len(code) > 0 {
		require.Equal(a.w.t, code[0], a.code, "%s: %s", a.w.last, a.body)
	}
	return a
}

func (a answer) into(v any) {
	a.w.t.Helper()
	require.NoError(a.w.t, json.Unmarshal([]byte(a.body), v), a.body)
}

func (a answer) etag() string { return a.header.Get("ETag") }

// docs declares the document pod that most tests use.
func (w *world) docs() {
	w.t.Helper()
	w.put("/v1/pods/docs", `{"type":"document"}`).is(201)
}
