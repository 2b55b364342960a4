package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/twinsrv/twinsrv/persist"
)

// metrics are the figures of one API and of what it serves, in a registry of its
// own.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec   // by operation and status
	duration *prometheus.HistogramVec // by operation, without streams
	asks     *prometheus.CounterVec   // by outcome
}

func newMetrics(a *API) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "twinsrv_http_requests_total", Help: "Requests that were answered, by operation and status.",
		}, []string{"operation", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "twinsrv_http_request_duration_seconds", Help: "How long requests took, by operation; streams are left out.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		}, []string{"operation"}),
		asks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "twinsrv_asks_total", Help: "Messages that entities were asked to handle for requests, by outcome: ok, or the code of the problem.",
		}, []string{"outcome"}),
	}
	m.registry.MustRegister(m.requests, m.duration, m.asks, newFigures(a), collectors.NewGoCollector())
	return m
}

// served notes a request that was answered.
func (m *metrics) served(op *operation, status int, took time.Duration) {
	if status == 0 { // nothing was written: net/http sends 200
		status = http.StatusOK
	}
	m.requests.WithLabelValues(op.id, strconv.Itoa(status)).Inc()
	if !op.streams {
		m.duration.WithLabelValues(op.id).Observe(took.Seconds())
	}
}

// asked notes how an ask ended.
func (m *metrics) asked(err error) {
	outcome := "ok"
	if err != nil {
		outcome = string(failureOf(err).code)
	}
	m.asks.WithLabelValues(outcome).Inc()
}

// figures are read when somebody asks for the metrics.
type figures struct {
	api *API

	pods, entities, waiting, futures, watchers, letters   *prometheus.Desc
	actors, mailbox, longest, failures, restarts, storeUp *prometheus.Desc
	commits, units, bytes, queued                         *prometheus.Desc
}

func newFigures(a *API) *figures {
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("twinsrv_"+name, help, labels, nil)
	}
	return &figures{
		api:      a,
		pods:     d("pods", "Pods that are served."),
		entities: d("entities", "Entities by the state of their slot: activating, active, removing, passivating, or quarantined (found to be unreadable).", "state"),
		waiting:  d("asks_waiting", "Requests that wait for entities."),
		futures:  d("futures", "Futures that are kept, by whether they have ended.", "state"),
		watchers: d("watchers", "Streams of events that are open."),
		letters:  d("dead_letters_total", "Messages that reached nobody."),
		actors:   d("actors", "Actors, those of entities included."),
		mailbox:  d("mailbox_messages", "Messages that wait in all mailboxes, behind what their actors are at or about to be."),
		longest:  d("mailbox_messages_max", "Messages that wait in the fullest mailbox."),
		failures: d("actor_failures_total", "Failures of actors outside the handlers of entities."),
		restarts: d("actor_restarts_total", "Restarts of actors."),
		storeUp:  d("store_up", "1 while the store takes writes, else 0."),
		commits:  d("commit_duration_seconds", "How long the store took for commits, sync included."),
		units:    d("commit_units_total", "Changes of entities that were to be committed, by outcome: applied, refused (by a conflict or for their data), failed.", "outcome"),
		bytes:    d("commit_bytes_total", "Bytes of the states, changes and rows in commits."),
		queued:   d("commit_units_queued", "Changes of entities that wait for a commit."),
	}
}

// Describe implements prometheus.Collector.
func (f *figures) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(f, to) }

// Collect implements prometheus.Collector.
func (f *figures) Collect(to chan<- prometheus.Metric) {
	a := f.api
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge(f.pods, len(a.pods.All()))
	slots := a.pods.Slots()
	gauge(f.entities, slots.Activating, "activating")
	gauge(f.entities, slots.Active, "active")
	gauge(f.entities, slots.Removing, "removing")
	gauge(f.entities, slots.Passivating, "passivating")
	gauge(f.entities, len(a.pods.Quarantined()), "quarantined")
	gauge(f.waiting, a.asks.Open())
	kept, pending := a.futures.count()
	gauge(f.futures, pending, "pending")
	gauge(f.futures, kept-pending, "ended")
	gauge(f.watchers, a.watching.count())
	up := 1
	if a.pods.Committer().Down() != nil {
		up = 0
	}
	gauge(f.storeUp, up)
	actors, messages, longest := 0, 0, 0
	for r := range a.pods.System().Root().Tree() {
		n := r.MailboxLen()
		actors, messages, longest = actors+1, messages+n, max(longest, n)
	}
	gauge(f.actors, actors)
	gauge(f.mailbox, messages)
	gauge(f.longest, longest)
	counter(f.letters, float64(a.pods.System().DeadLetters().Count()))
	c := a.pods.Committer().Figures()
	classes, below := make(map[float64]uint64, persist.CommitBuckets), uint64(0)
	for class, n := range c.Took {
		below += n
		classes[persist.CommitBound(class).Seconds()] = below
	}
	to <- prometheus.MustNewConstHistogram(f.commits, c.Commits, c.InStore.Seconds(), classes)
	counter(f.units, float64(c.Applied), "applied")
	counter(f.units, float64(c.Refused), "refused")
	counter(f.units, float64(c.Failed), "failed")
	counter(f.bytes, float64(c.Bytes))
	gauge(f.queued, c.Queued)
	t := a.troubles.total()
	counter(f.failures, float64(t.failures))
	counter(f.restarts, float64(t.restarts))
}
