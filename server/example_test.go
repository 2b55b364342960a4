package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/twinsrv/twinsrv/server"
)

func ExampleOpen() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "twinsrv-example-")
	defer os.RemoveAll(dir)
	s, err := server.Open(ctx, server.Config{Data: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close(ctx)

	ask := func(method, path, body string) {
		r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		fmt.Println(method, w.Code, w.Header()["Etag"])
	}
	ask(http.MethodPut, "/v1/pods/rooms", `{"type":"document"}`) // a pod has no ETag
	ask(http.MethodPut, "/v1/pods/rooms/entities/hall/state", `{"celsius":21.5}`)
	ask(http.MethodPatch, "/v1/pods/rooms/entities/hall/state", `{"celsius":22}`)
	// Output:
	// PUT 201 []
	// PUT 201 ["2-1"]
	// PATCH 200 ["2-2"]
}
