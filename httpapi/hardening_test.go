package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// bomb is a reply whose own encoding panics.
type bomb struct{ Armed bool }

func (b bomb) MarshalJSON() ([]byte, error) {
	if b.Armed {
		panic("an odd reply")
	}
	return []byte(`"safe"`), nil
}

type (
	bombs struct{}
	arm   struct{}
)

// An answer that panics when it is written harms its own request alone: it is
// the handler's failure, also where no request waits for it.
func TestAnAnswerThatPanics(t *testing.T) {
	w := newWorld(t)
	_, err := pod.Start(w.pods, entity.Type[bombs]{Name: "bombs", Handlers: entity.Handlers[bombs]{
		"arm": entity.Reply(func(*entity.Context, *bombs, arm) (bomb, error) { return bomb{Armed: true}, nil }),
	}})
	require.NoError(t, err)
	const target = "/v1/pods/bombs/entities/b/messages/arm"
	w.post(target, ``).is(500, "handler_failed")
	ended := w.future(w.post(target, ``, prefer, "respond-async"))
	require.Equal(t, "failed", ended.Status)
	require.Equal(t, httpapi.CodeHandlerFailed, ended.Problem.Code)
	a := w.post("/v1/batch", `[{"pod":"bombs","name":"b","type":"arm"},{"pod":"gauges","name":"g","type":"add","body":{"n":1}}]`).is(200)
	require.Contains(t, a.body, "handler_failed")
	require.Contains(t, a.body, `"status":200`)
}

// A header that is not heeded is refused: a repeated deletion with the key of the
// first would end the life that has begun since.
func TestHeadersThatAreNotHeeded(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.put(room+"/state", `{"n":1}`).is(201)
	w.delete(room, "Idempotency-Key", "k").is(400, "bad_message_id")
	w.get(room).is(200)
	w.post("/v1/batch", `[]`, "Idempotency-Key", "k").is(400, "bad_message_id")
	w.put("/v1/pods/docs", `{"type":"document"}`, "If-Match", `"1-1"`).is(400, "bad_condition")
	w.delete("/v1/pods/docs?cascade=true", "If-None-Match", "*").is(400, "bad_condition")
	w.get(room).is(200)
	w.get("/v1/pods", "If-Match", `"1-1"`).is(200)
}

func TestBatchesAreRefusedAsSoonAsTheyAreTooLong(t *testing.T) {
	w := newWorld(t)
	for text, want := range map[string]string{
		"[" + strings.Repeat("1,", 1000) + "1]": "at most 1000", "null": "does not begin", `{}`: "does not begin", "[1": "array", "[] 1": "behind it", "": "array",
		"[" + strings.Repeat("1,", 1000) + "!": "at most 1000", // what follows is not looked at
	} {
		require.Contains(t, w.post("/v1/batch", text).is(400, "malformed").body, want)
	}
	w.post("/v1/batch", ` [ ] `).is(200)
}

// A token that is taken back ends the streams that it has opened.
func TestARevokedTokenEndsItsStreams(t *testing.T) {
	old, other := httpapi.Token{Value: "old"}, httpapi.Token{Value: "other", Write: true}
	w := newWorld(t, func(c *httpapi.Config, _ *pod.Config) { c.Heartbeat = 10 * time.Millisecond })
	w.api.SetTokens([]httpapi.Token{old, other})
	streams := []*stream{w.watch("/v1/watch", "Authorization", "Bearer old"), w.watch("/v1/deadletters", "Authorization", "Bearer old")}
	stays := w.watch("/v1/watch", "Authorization", "Bearer other")
	w.api.SetTokens([]httpapi.Token{other})
	for _, s := range streams {
		require.Eventually(t, func() bool {
			e := s.any()
			return e.kind == "cut" && e.data["reason"] == "unauthorized"
		}, eventually, tick)
	}
	for range 3 {
		require.Equal(t, ":", beat(stays).comment)
	}
}

// beat skips the place where a stream begins.
func beat(s *stream) event {
	for {
		if e := s.any(); e.comment != "" {
			return e
		}
	}
}

// An import that brings nothing ends with the server's streams.
func TestAnImportOfNothingEnds(t *testing.T) {
	w := newWorld(t)
	c, err := net.Dial("tcp", w.srv.Listener.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	const first = `{"pod":"docs","name":"a","state":{}}` + "\n"
	_, err = fmt.Fprintf(c, "POST /v1/import HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n1\r\n\n\r\n",
		lines, len(first), first)
	require.NoError(t, err)
	in := bufio.NewReader(c)
	status, err := in.ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, status, "200")
	w.api.EndStreams()
	_, err = io.Copy(io.Discard, in) // it ends also while nothing more comes
	require.NoError(t, err)
}

// A client that is cut off before the first change of a new store goes on at its
// beginning.
func TestAWatchOfANewStoreSaysWhereItBegins(t *testing.T) {
	w := newWorldOn(t, persisttest.NewMemory(), false)
	first := w.watch("/v1/watch").any()
	require.Equal(t, "0", first.id)
	w.docs()
	w.put(room+"/state", `{"n":1}`).is(201)
	w.watch("/v1/watch?pods=docs,docs", "Last-Event-ID", "0").is("changed", "room", 1)
}
