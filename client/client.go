package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Config tunes a Client. The zero value works.
type Config struct {
	// Token is the bearer token that requests have. Empty is none.
	Token string
	// HTTP sends the requests. It must not bound their time, or it cuts streams;
	// contexts do. nil is a client of its own.
	HTTP *http.Client
	// Repeats is how often a request is sent again at most. 0 means 5, negative
	// never.
	Repeats int
	// Pause is about the wait before the first repeat; it doubles with each one,
	// up to MaxPause. 0 means 100 ms.
	Pause time.Duration
	// MaxPause is about the longest wait, unless the server asks for a longer
	// one. 0 means 5 s.
	MaxPause time.Duration
	// Silence is how long a watch waits for a sign of life before it connects
	// anew; servers give one every 15 s. 0 means 45 s.
	Silence time.Duration
	// UserAgent names the program. Empty means "twinsrv-client".
	UserAgent string
}

// Client is the address of a server. It is safe for concurrent use.
type Client struct {
	base string // without a slash at its end
	cfg  Config
}

// New returns the client of a server, such as "http://localhost:8080". It sends
// nothing yet.
func New(base string, cfg Config) (*Client, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the server's address: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("the server's address is a URL such as http://localhost:8080, not %q", base)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("the server's address %q has a query or a fragment", base)
	}
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{Transport: transport()}
	}
	if cfg.Repeats == 0 {
		cfg.Repeats = 5
	}
	if cfg.Pause <= 0 {
		cfg.Pause = 100 * time.Millisecond
	}
	if cfg.MaxPause <= 0 {
		cfg.MaxPause = 5 * time.Second
	}
	if cfg.Silence <= 0 {
		cfg.Silence = 45 * time.Second
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "twinsrv-client"
	}
	return &Client{base: strings.TrimRight(base, "/"), cfg: cfg}, nil
}

// transport keeps more connections to the one server than the default does.
func transport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = 64
	return t
}

// Close closes connections that nobody uses.
func (c *Client) Close() { c.cfg.HTTP.CloseIdleConnections() }

const (
	jsonType      = "application/json"
	mergeType     = "application/merge-patch+json"
	jsonPatchType = "application/json-patch+json"
	linesType     = "application/x-ndjson"
	eventsType    = "text/event-stream"
)

// repeats says when a request may be sent again.
type repeats uint8

const (
	undone repeats = iota // if the server says that it did nothing
	always                // whatever has become of it
)

// request is one request, which may be sent several times.
type request struct {
	method, path string // escaped
	query        url.Values
	header       http.Header
	body         []byte
	bodyType     string
	reads        bool // as every GET does
	repeats      repeats
}

func (r *request) set(name, value string) {
	if r.header == nil {
		r.header = http.Header{}
	}
	r.header.Set(name, value)
}

func (r *request) ask(name, value string) {
	if r.query == nil {
		r.query = url.Values{}
	}
	r.query.Set(name, value)
}

// writes reports whether it makes a difference if the request was handled.
func (r *request) writes() bool { return r.method != http.MethodGet && !r.reads }

func (r *request) String() string { return r.method + " " + r.path }

// answer is what a request came to.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// into decodes the answer's body; nil takes none.
func (a *answer) into(v any) error {
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(a.body, v); err != nil {
		return fmt.Errorf("the answer does not fit a %T: %w", v, err)
	}
	return nil
}

// do sends a request until it has an answer that stands, or may not be repeated.
func (c *Client) do(ctx context.Context, r request) (*answer, error) {
	for try := 0; ; try++ {
		a, err := c.once(ctx, &r)
		if err == nil {
			return a, nil
		}
		if !r.again(err) || !c.pause(ctx, try, err) {
			return nil, err
		}
	}
}

// once sends a request and reads its answer.
func (c *Client) once(ctx context.Context, r *request) (*answer, error) {
	resp, err := c.send(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, r.lost(err)
	}
	return &answer{status: resp.StatusCode, header: resp.Header, body: body}, nil
}

// send sends a request once and returns an answer that is no error; its body is
// to be closed. A body that is not nil is sent in place of the request's own.
func (c *Client) send(ctx context.Context, r *request, body io.Reader) (*http.Response, error) {
	if body == nil && r.body != nil {
		body = bytes.NewReader(r.body)
	}
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r, err)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	if r.bodyType != "" {
		req.Header.Set("Content-Type", r.bodyType)
	}
	if c.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.cfg.Token)
	}
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	resp, err := c.cfg.HTTP.Do(req)
	if err != nil {
		var cause *url.Error
		if errors.As(err, &cause) {
			err = cause.Err // it names the URL, which is named here
		}
		return nil, r.lost(err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		defer resp.Body.Close()
		return nil, r.failed(resp)
	}
	return resp, nil
}

// getJSON reads something.
func (c *Client) getJSON(ctx context.Context, path string, query url.Values, into any) error {
	a, err := c.do(ctx, request{method: http.MethodGet, path: path, query: query, repeats: always})
	if err != nil {
		return err
	}
	return a.into(into)
}
