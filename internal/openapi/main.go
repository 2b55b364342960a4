// Command openapi prints the OpenAPI document of a server that has pods of every
// kind, for linters to read.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/pod"
)

func main() {
	document, err := document(context.Background())
	var lines bytes.Buffer // which a linter can name
	if err == nil {
		err = json.Indent(&lines, []byte(document), "", "  ")
	}
	if err == nil {
		_, err = lines.WriteTo(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func document(ctx context.Context) (string, error) {
	sys := actor.NewSystem("openapi", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }() // nothing is kept
	pods, err := pod.Open(sys, memory.Open(memory.Config{}), pod.Config{})
	if err != nil {
		return "", err
	}
	defer func() { _ = pods.Close(ctx) }()
	if _, err := pod.Start(pods, machines()); err != nil {
		return "", err
	}
	if _, err := pod.Start(pods, purses()); err != nil {
		return "", err
	}
	api := httpapi.New(pods, httpapi.Config{})
	defer api.Close()
	if _, err := request(api, http.MethodPut, "/v1/pods/notes", `{"type":"document"}`); err != nil {
		return "", err
	}
	if _, err := request(api, http.MethodPut, "/v1/pods/rooms", `{"type":"document","schema":`+roomSchema+`}`); err != nil {
		return "", err
	}
	return request(api, http.MethodGet, "/openapi.json", "")
}

func request(api http.Handler, method, path, body string) (answer string, err error) {
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	if w.Code >= http.StatusBadRequest {
		return "", fmt.Errorf("%s %s: %s", method, path, w.Body)
	}
	return w.Body.String(), nil
}
