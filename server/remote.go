package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/httpapi"
)

// defaultServer is where commands look for a running server.
const defaultServer = "http://" + DefaultListen

// remoteTimeout bounds a request: the server itself bounds it by less.
const remoteTimeout = 75 * time.Second

// remote is a running server, seen from a command.
type remote struct {
	base   string // without a slash at its end
	shown  string // without a password
	token  string // of TWINSRV_TOKEN
	client *http.Client
}

// connect checks the URL of a server; nothing is sent yet.
func connect(server string) (*remote, error) {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, usagef("--server wants the URL of a server, such as %s", defaultServer)
	}
	return &remote{base: strings.TrimRight(server, "/"), shown: u.Redacted(), token: os.Getenv("TWINSRV_TOKEN"), client: &http.Client{}}, nil
}

// close lets go of connections.
func (r *remote) close() { r.client.CloseIdleConnections() }

// call sends a request and decodes the answer into a value, unless that is nil.
func (r *remote) call(ctx context.Context, method, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, remoteTimeout)
	defer cancel()
	body, err := r.open(ctx, method, path)
	if err != nil {
		return err
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	if err != nil {
		return fmt.Errorf("the answer of %s broke off: %w", r.shown, err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s does not answer as a twinsrv server does; is the address right? %w", r.shown, err)
	}
	return nil
}

// open sends a request and returns the body of a good answer, which the caller
// closes.
func (r *remote) open(ctx context.Context, method, path string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, nil)
	if err != nil {
		return nil, usagef("--server wants the URL of a server, such as %s", defaultServer)
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, r.unreachable(err)
	}
	if resp.StatusCode/100 == 2 {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	return nil, r.refusal(resp)
}

// unreachable says what to do when there is no answer. The cause is told
// without the URL, which may hold a password.
func (r *remote) unreachable(err error) error {
	var sent *url.Error
	if errors.As(err, &sent) {
		err = sent.Err
	}
	var refused *net.OpError
	if errors.As(err, &refused) && refused.Op == "dial" {
		return fmt.Errorf("no server answers at %s: %w; start it, or say where it is with --server", r.shown, err)
	}
	return fmt.Errorf("%s did not answer: %w", r.shown, err)
}

// refusal is the server's error as it words it.
func (r *remote) refusal(resp *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	var p httpapi.Problem
	if err == nil && json.Unmarshal(data, &p) == nil && p.Code != "" {
		return &problemError{p}
	}
	text := string(bytes.TrimSpace(data[:min(len(data), 200)]))
	return fmt.Errorf("%s answered %s, which is not how a twinsrv server does it; is the address right? %s", r.shown, resp.Status, printable(text))
}

// problemError is what a server answered with.
type problemError struct{ httpapi.Problem }

func (e *problemError) Error() string {
	text := fmt.Sprintf("the server refused it: %s (%s)", printable(e.Detail), e.Code)
	switch e.Code {
	case httpapi.CodeStoreUnavailable, httpapi.CodeOverloaded, httpapi.CodeBusy, httpapi.CodeMailboxFull, httpapi.CodeStopping:
		text += "; try again in a moment"
	case httpapi.CodeUnauthorized, httpapi.CodeReadOnlyToken:
		text += "; give a token that may write in the environment variable TWINSRV_TOKEN"
	case httpapi.CodeForbiddenHost:
		text += "; use an address that the server is told by --listen"
	}
	return text
}
