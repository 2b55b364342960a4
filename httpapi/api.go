package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"

	"github.com/twinsrv/twinsrv/actor/patterns"
	"github.com/twinsrv/twinsrv/httpapi/explorer"
	"github.com/twinsrv/twinsrv/httpapi/webpage"
	"github.com/twinsrv/twinsrv/pod"
	"github.com/twinsrv/twinsrv/snapshot"
)

// Config tunes an API. The zero value works, for a server on a loopback
// address.
type Config struct {
	// Logger gets failures of handlers and of the server; nil discards.
	Logger *slog.Logger
	// MaxBody is the most bytes that a request's body may have. 0 means 1 MiB.
	MaxBody int64
	// Hosts are names and addresses, without ports, that the Host header may
	// name beside localhost and loopback addresses.
	Hosts []string
	// AnyHost switches the check of the Host header off.
	AnyHost bool
	// Version stands in the OpenAPI document. Empty means "0".
	Version string
	// MaxWaiting is how many requests may wait for entities at a time. 0 means
	// 10,000.
	MaxWaiting int
	// Store is the kind of store that the pods are kept in, for people to read:
	// "bolt", "json", "postgres", "memory". Empty if it is none of these.
	Store string
	// MaxLine is the most bytes that a line of an import may have. 0 means 8 MiB.
	MaxLine int64
	// MaxWatchers is how many streams of events may be open. 0 means 10,000.
	MaxWatchers int
	// Heartbeat is the time between two heartbeats of a stream of events. 0 means
	// 15 s.
	Heartbeat time.Duration
	// Tokens are those that let requests in; see SetTokens. nil lets everybody
	// do everything.
	Tokens []Token
	// Ready, if set, says why the server is not ready for some reason of its
	// own, or nil. It must not block.
	Ready func() error
}

// API is the HTTP interface of a pod registry. It is safe for concurrent use.
type API struct {
	strict   snapshot.StrictJSON
	pods     *pod.Pods
	cfg      Config
	log      *slog.Logger
	asks     *patterns.CompletionService
	router   *echo.Echo
	document document
	backing  atomic.Bool   // a backup is being written
	patience time.Duration // with clients that receive much
	window   int           // bytes of memory that the lines of an import take that are on their way
	tokens   atomic.Pointer[[]digest]
	metrics  *metrics
	shapes   shapes
	futures  futures
	watching watching
	letters  deadLetters
	troubles troubles
	changes  changeCounts

	explorer  http.Handler
	reference *webpage.Page

	ending     context.Context // of streams
	endStreams context.CancelFunc
}

var _ http.Handler = (*API)(nil)

// New returns the API of pods, which stay the caller's to close, after the API.
func New(pods *pod.Pods, cfg Config) *API {
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = 1 << 20
	}
	if cfg.Version == "" {
		cfg.Version = "0"
	}
	if cfg.MaxLine <= 0 {
		cfg.MaxLine = 8 << 20
	}
	if cfg.MaxWaiting <= 0 {
		cfg.MaxWaiting = 10_000
	}
	if cfg.MaxWatchers <= 0 {
		cfg.MaxWatchers = 10_000
	}
	if cfg.Heartbeat <= 0 {
		cfg.Heartbeat = 15 * time.Second
	}
	a := &API{
		pods: pods, cfg: cfg, log: cfg.Logger, router: echo.New(), patience: backupPatience, window: importMemory,
		asks:     patterns.NewCompletionService(pods.System(), patterns.Config{Limit: cfg.MaxWaiting, Timeout: defaultTimeout}),
		explorer: explorer.Handler(), reference: referencePage(),
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	a.ending, a.endStreams = context.WithCancel(context.Background())
	a.SetTokens(cfg.Tokens)
	a.futures.now = pods.System().Now
	a.watching.most, a.watching.mostBytes = cfg.MaxWatchers, maxWatchFilters
	a.letters.listen(pods.System())
	a.troubles.listen(pods.System())
	a.changes.listen(pods)
	a.metrics = newMetrics(a)
	a.router.HTTPErrorHandler = a.unrouted
	a.register()
	return a
}

// Close ends requests that still wait for an entity, with 503, and streams.
func (a *API) Close() {
	a.endStreams()
	a.letters.cancel()
	a.troubles.cancel()
	a.changes.cancel()
	a.asks.Close()
	a.futures.wait.Wait()
}

// ServeHTTP serves one request. A panic is answered with 500 and logged; behind
// the beginning of an answer it cuts the connection, so that the answer does not
// look whole.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			a.panicked(w, r, p, false)
		}
	}()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	err := a.guard(r)
	if err == nil {
		var to *http.Request
		if to, err = routed(r); err == nil {
			r = to
		} else if denied := a.authorize(&operation{method: http.MethodGet}, r); denied != nil {
			err = denied
		}
	}
	if err != nil {
		failureOf(err).write(w)
		return
	}
	a.router.ServeHTTP(w, r)
}

// panicked answers a request whose operation has panicked.
func (a *API) panicked(w http.ResponseWriter, r *http.Request, p any, begun bool) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	a.log.ErrorContext(r.Context(), "a request panicked", "method", r.Method, "path", r.RequestURI, "panic", p, "stack", string(debug.Stack()))
	if begun {
		panic(http.ErrAbortHandler)
	}
	refuse(CodeInternal, "the server failed; its log says how").write(w)
}

// unrouted answers requests that match no operation. What there is, only those
// learn who may read.
func (a *API) unrouted(err error, c echo.Context) {
	if denied := a.authorize(&operation{method: http.MethodGet}, c.Request()); denied != nil {
		failureOf(denied).write(c.Response())
		return
	}
	f := refuse(CodeNotFound, "there is nothing at this path; /openapi.json lists what there is, and a slash in a name is written %2F")
	switch {
	case errors.Is(err, echo.ErrMethodNotAllowed):
		f = refuse(CodeMethodNotAllowed, "the path takes "+c.Response().Header().Get(echo.HeaderAllow)+elsewhere(c.Path()))
	case !errors.Is(err, echo.ErrNotFound):
		f = failureOf(err)
		a.note(c.Request(), f)
	}
	f.write(c.Response())
}

// elsewhere says where to send what people send to a route that does not take it.
func elsewhere(route string) string {
	switch route {
	case pattern(entityRoute):
		return "; a PUT or PATCH of the state goes to …/state, and a message to …/messages/{type}"
	case pattern(podRoute + "/entities"):
		return "; the first message to an entity, or a PUT of its state, creates it"
	case "/v1/pods", pattern(podRoute):
		return "; a PUT of /v1/pods/{pod} declares a pod"
	}
	return ""
}

// pattern is a path with parameters as the router has it.
func pattern(path string) string { return strings.NewReplacer("{", ":", "}", "").Replace(path) }

// register puts the operations into the router and into the document. Huma's
// own handling of bodies and parameters is not used: bodies must pass as bytes,
// or numbers would lose their text, and names come from the escaped path.
func (a *API) register() {
	config := huma.DefaultConfig("twinsrv", a.cfg.Version)
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil
	config.Info.Description = apiDescription
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {
		Type: "http", Scheme: "bearer", Description: "A token of the server, if it wants one: one that may write for what changes something.",
	}}
	config.Info.Contact = &huma.Contact{Name: "twinsrv", URL: "https://github.com/twinsrv/twinsrv"}
	config.Servers = []*huma.Server{{URL: "/", Description: "The server that the document is of."}}
	for _, g := range operationGroups() {
		config.Tags = append(config.Tags, &huma.Tag{Name: g.tag, Description: g.description})
	}
	config.Security = []map[string][]string{{}, {"token": {}}}
	api := humaecho.New(a.router, config)
	doc := documenter{schemas: api.OpenAPI().Components.Schemas}
	for _, op := range operations() {
		described := doc.operation(&op)
		api.OpenAPI().AddOperation(described)
		handle := func(c echo.Context) {
			begun := time.Now()
			defer func() { a.metrics.served(&op, c.Response().Status, time.Since(begun)) }()
			defer func() {
				if p := recover(); p != nil {
					a.panicked(c.Response(), c.Request(), p, c.Response().Committed)
				}
			}()
			a.serve(&op, c.Response(), c.Request())
		}
		api.Adapter().Handle(described, func(ctx huma.Context) { handle(humaecho.Unwrap(ctx)) })
		if op.method == http.MethodGet && !op.streams {
			a.router.HEAD(pattern(op.path), func(c echo.Context) error {
				handle(c)
				return nil
			})
		}
	}
	for _, path := range []string{stateRoute, valueRoute} {
		a.router.OPTIONS(pattern(path), a.stateOptions(path))
	}
	var err error
	if a.document.base, err = json.Marshal(api.OpenAPI()); err != nil {
		panic(fmt.Errorf("the OpenAPI document: %w", err)) // it depends on nothing but this package
	}
}
