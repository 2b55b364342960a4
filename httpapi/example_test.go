package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

func ExampleNew() {
	ctx := context.Background()
	sys := actor.NewSystem("example", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }()
	pods, err := pod.Open(sys, persisttest.NewMemory(), pod.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = pods.Close(ctx) }()
	api := httpapi.New(pods, httpapi.Config{})
	defer api.Close()

	ask := func(method, path, body string) {
		r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Body)
	}
	ask(http.MethodPut, "/v1/pods/rooms", `{"type":"document","create":{"by":["merge"]}}`)
	ask(http.MethodPost, "/v1/pods/rooms/entities/hall%2F3/messages/merge", `{"celsius":21.5}`)
	ask(http.MethodGet, "/v1/pods/rooms/entities/hall%2F3/state", "")
	ask(http.MethodGet, "/v1/pods/rooms/entities/cellar", "")
	// Output:
	// 201 {"name":"rooms","type":"document","durability":"sync","create":{"by":["merge"]},"messages":[{"name":"merge","kind":"on","creates":true},{"name":"patch","kind":"on","creates":false},{"name":"remove","kind":"on","creates":false},{"name":"set","kind":"on","creates":false}],"history":{"changes":1000000,"dropped":0,"position":1}}
	// 200 {"life":2,"revision":1}
	// 200 {"celsius":21.5}
	// 404 {"title":"Not Found","status":404,"code":"no_such_entity","detail":"no such entity: rooms/cellar"}
}
