package httpapi

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/twinsrv/twinsrv/persist"
)

// Health says whether the server serves, and on what.
type Health struct {
	Status string `json:"status"`
	// Store is the kind of store that everything is kept in, such as "bolt".
	Store string `json:"store,omitempty"`
	// Version is that of the server's program.
	Version string `json:"version"`
	Pods    int    `json:"pods"`
	// Active is how many entities are in memory.
	Active int `json:"active"`
	// Quarantined is how many were found to be unreadable.
	Quarantined int `json:"quarantined"`
}

// Readiness says that the server takes everything that it can take.
type Readiness struct {
	Status string `json:"status"`
	Pods   int    `json:"pods"`
	// ReadOnly are the pods whose types this program does not have.
	ReadOnly []string `json:"readOnly,omitempty"`
}

// Limits are the bounds that requests meet.
type Limits struct {
	MaxBody        int64   `json:"maxBody" doc:"bytes of a body"`
	MaxLine        int64   `json:"maxLine" doc:"bytes of a line of an import"`
	MaxBatch       int     `json:"maxBatch" doc:"messages of a batch"`
	MaxBatchBody   int64   `json:"maxBatchBody" doc:"bytes of a batch, and of its answers"`
	MaxConditions  int     `json:"maxConditions" doc:"bytes of the different conditions of a batch"`
	DefaultTimeout float64 `json:"defaultTimeout" doc:"seconds"`
	MaxTimeout     float64 `json:"maxTimeout" doc:"seconds"`
	DefaultLimit   int     `json:"defaultLimit" doc:"items of a page"`
	MaxLimit       int     `json:"maxLimit" doc:"items of a page"`
	MaxName        int     `json:"maxName" doc:"bytes of an entity's name"`
	MaxPodName     int     `json:"maxPodName" doc:"bytes of a pod's name"`
	MaxMessageID   int     `json:"maxMessageID" doc:"bytes of an Idempotency-Key"`
	MaxWaiting     int     `json:"maxWaiting" doc:"requests that wait for entities"`
	MaxWatchers    int     `json:"maxWatchers" doc:"streams of events"`
	MaxFilters     int     `json:"maxFilters" doc:"bytes of the filters of all watches"`
	MaxFutures     int     `json:"maxFutures" doc:"futures that are kept"`
	FutureLife     float64 `json:"futureLife" doc:"seconds that a future is kept after its end"`
	Heartbeat      float64 `json:"heartbeat" doc:"seconds between the heartbeats of a stream"`
	DeadLetters    int     `json:"deadLetters" doc:"dead letters that are kept"`
}

// getHealth answers 503 while the store takes no writes.
func getHealth(c *call) error {
	pods := c.api.pods
	if err := pods.Committer().Down(); err != nil {
		return refuse(CodeStoreUnavailable, whyDown(err)+"; reads go on where they can")
	}
	return c.json(http.StatusOK, Health{
		Status: "ok", Store: c.api.cfg.Store, Version: c.api.cfg.Version, Pods: len(pods.All()), Active: pods.Active(), Quarantined: len(pods.Quarantined()),
	})
}

// whyDown says why the store takes no writes, and nothing about the machine.
func whyDown(err error) string {
	if errors.Is(err, persist.ErrNoRoom) {
		return "the disk that the store is on is full; it takes writes once there is room"
	}
	return "the store failed and is being reopened"
}

// getReadiness answers 503 while something is missing.
func getReadiness(c *call) error {
	pods := c.api.pods
	if err := pods.Committer().Down(); err != nil {
		return refuse(CodeStoreUnavailable, whyDown(err))
	}
	if c.api.ending.Err() != nil {
		return refuse(CodeStopping, "the server is being stopped")
	}
	if ready := c.api.cfg.Ready; ready != nil {
		if err := ready(); err != nil {
			return refuse(CodeNotReady, err.Error())
		}
	}
	if names := pods.Recovering(); len(names) > 0 {
		return refuse(CodeNotReady, "entities are still being brought into memory: those of "+strings.Join(names, ", "))
	}
	r := Readiness{Status: "ready"}
	for _, p := range pods.All() {
		r.Pods++
		if p.Spec() == nil {
			r.ReadOnly = append(r.ReadOnly, p.Name())
		}
	}
	return c.json(http.StatusOK, r)
}

func getLimits(c *call) error {
	cfg := c.api.cfg
	return c.json(http.StatusOK, Limits{
		MaxBody: cfg.MaxBody, MaxLine: cfg.MaxLine, MaxBatch: maxBatch, MaxBatchBody: maxBatchBody * cfg.MaxBody, MaxConditions: maxBatchConditions,
		DefaultTimeout: defaultTimeout.Seconds(), MaxTimeout: maxTimeout.Seconds(), DefaultLimit: defaultLimit, MaxLimit: maxLimit,
		MaxName: 256, MaxPodName: 64, MaxMessageID: 200,
		MaxWaiting: cfg.MaxWaiting, MaxWatchers: cfg.MaxWatchers, MaxFilters: maxWatchFilters, MaxFutures: maxFutures, FutureLife: futureLife.Seconds(),
		Heartbeat: cfg.Heartbeat.Seconds(), DeadLetters: keptLetters,
	})
}

func getMetrics(c *call) error {
	c.w.Header().Set("Cache-Control", "no-store")
	promhttp.HandlerFor(c.api.metrics.registry, promhttp.HandlerOpts{DisableCompression: true, Timeout: 30 * time.Second}).ServeHTTP(c.w, c.r)
	return nil
}

// typeName names a Go type for people.
func typeName(v any) string {
	if v == nil {
		return "nil"
	}
	return reflect.TypeOf(v).String()
}
