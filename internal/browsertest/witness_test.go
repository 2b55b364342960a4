package browsertest

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
)

// witness hears everything that happens in a tab and knows what must not.
type witness struct {
	origin string // of the server, such as http://127.0.0.1:8080

	mu       sync.Mutex
	said     []string  // all of the console
	wrong    []string  // what must not be, whatever the test does
	failed   []failure // requests, to be judged in the end
	allowed  []refusal
	outages  []outage
	requests []string // the URLs
}

// failure is a request that failed or was refused, as the console shows it.
type failure struct {
	text, url string
	at        time.Time
}

// refusal is an answer that a test provokes.
type refusal struct {
	status int
	part   string // of the URL
}

// outage is a time in which the server is gone.
type outage struct{ from, to time.Time }

// binding is what the page's listener for violations of the policy calls.
const binding = "browsertestViolation"

// violations is a script that runs before the page's own.
const violations = `document.addEventListener("securitypolicyviolation", e => ` + binding + `(JSON.stringify(
	[e.violatedDirective, e.blockedURI, e.sourceFile, e.lineNumber, e.sample].map(String))))`

// hear takes an event of the tab. It must not wait for anything.
func (w *witness) hear(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		line := fmt.Sprintf("console.%s: %s", e.Type, values(e.Args))
		w.said = append(w.said, line)
		switch e.Type {
		case runtime.ConsoleAPICalledTypeError, runtime.ConsoleAPICalledTypeWarning, runtime.ConsoleAPICalledTypeAssert:
			w.wrong = append(w.wrong, line)
		}
	case *runtime.EventExceptionThrown:
		w.fault("exception: " + exception(e.ExceptionDetails))
	case *runtime.EventBindingCalled:
		if e.Name == binding {
			w.fault("violation of the Content-Security-Policy: " + e.Payload)
		}
	case *log.EventEntryAdded:
		w.entry(e.Entry)
	case *network.EventRequestWillBeSent:
		w.requests = append(w.requests, e.Request.URL+e.Request.URLFragment)
		if !w.own(e.Request.URL) {
			w.fault("request to another origin: " + e.Request.URL)
		}
	case *network.EventWebSocketCreated:
		w.fault("a web socket: " + e.URL)
	}
}

func (w *witness) fault(line string) {
	w.said = append(w.said, line)
	w.wrong = append(w.wrong, line)
}

// entry takes what the browser itself writes to the console.
func (w *witness) entry(e *log.Entry) {
	line := fmt.Sprintf("%s %s: %s %s", e.Source, e.Level, e.Text, e.URL)
	switch {
	case e.Level != log.EntryLevelError && e.Level != log.EntryLevelWarning:
		w.said = append(w.said, line)
	case e.Source == log.EntrySourceNetwork:
		w.said = append(w.said, line)
		w.failed = append(w.failed, failure{text: e.Text, url: e.URL, at: moment(e.Timestamp)})
	default:
		w.fault(line)
	}
}

// moment is a time that the protocol gives in milliseconds.
func moment(t runtime.Timestamp) time.Time {
	return time.UnixMicro(int64(float64(t) * 1000))
}

// own reports whether a URL is one of the server, or of no server.
func (w *witness) own(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	switch u.Scheme {
	case "data", "about", "blob":
		return true
	}
	return u.Scheme+"://"+u.Host == w.origin
}

// allow has the witness pass over a refusal that the test is about to provoke:
// a status of an answer to a URL that has part in it.
func (w *witness) allow(status int, part string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.allowed = append(w.allowed, refusal{status, part})
}

// gone has it pass over requests that fail for want of a server, from now until
// back is called.
func (w *witness) gone() (back func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outages = append(w.outages, outage{from: time.Now()})
	i := len(w.outages) - 1
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.outages[i].to = time.Now()
	}
}

// faults returns what happened that must not.
func (w *witness) faults() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := slices.Clone(w.wrong)
	for _, f := range w.failed {
		if !w.meant(f) {
			list = append(list, fmt.Sprintf("%s %s", f.text, f.url))
		}
	}
	return list
}

// meant reports whether a request failed as the test wanted it to.
func (w *witness) meant(f failure) bool {
	for _, r := range w.allowed {
		if strings.Contains(f.text, fmt.Sprintf("status of %d ", r.status)) && strings.Contains(f.url, r.part) {
			return true
		}
	}
	lost := strings.Contains(f.text, "net::ERR_") || strings.Contains(f.text, "status of 503 ")
	return lost && w.own(f.url) && slices.ContainsFunc(w.outages, func(o outage) bool {
		return !f.at.Before(o.from.Add(-time.Second)) && (o.to.IsZero() || !f.at.After(o.to))
	})
}

// asked returns the URLs of all requests so far.
func (w *witness) asked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

// console returns all that was said so far.
func (w *witness) console() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.said, "\n")
}

// values shows the arguments of a call of the console.
func values(args []*runtime.RemoteObject) string {
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		var text string
		switch {
		case json.Unmarshal(a.Value, &text) == nil:
			b.WriteString(text)
		case len(a.Value) > 0:
			b.Write(a.Value)
		default:
			b.WriteString(a.Description)
		}
	}
	return b.String()
}

func exception(d *runtime.ExceptionDetails) string {
	line := fmt.Sprintf("%s %s:%d:%d", d.Text, d.URL, d.LineNumber+1, d.ColumnNumber+1)
	if d.Exception != nil {
		line += " " + d.Exception.Description
	}
	return line
}
