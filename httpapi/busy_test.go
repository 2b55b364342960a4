package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/pod"
)

type (
	sender struct {
		Sent int `json:"sent"`
	}
	send  struct{}
	grow  struct{ N int }
	grown struct{ N int }
)

// A deletion waits for what the entity sent, but not for ever.
func TestDeletionWaitsForDeliveries(t *testing.T) {
	w := newWorld(t)
	_, err := pod.Start(w.pods, entity.Type[sender]{Name: "senders", Handlers: entity.Handlers[sender]{
		"send": entity.On(func(c *entity.Context, s *sender, _ send) error {
			s.Sent++
			c.SendOnce("gauges", "g", stall{})
			return nil
		}),
	}})
	require.NoError(t, err)
	for _, name := range []string{"a", "b", "c"} {
		w.post("/v1/pods/senders/entities/"+name+"/messages/send", ``).is(200)
	}
	tag := w.get("/v1/pods/senders/entities/b").is(200).etag()
	w.delete("/v1/pods/senders/entities/a?discard=perhaps").is(400, "bad_query")
	busy := w.delete("/v1/pods/senders/entities/a").is(503, "busy")
	require.Equal(t, "1", busy.header.Get("Retry-After"))
	w.get("/v1/pods/senders/entities/a").is(200)

	w.delete("/v1/pods/senders/entities/b?discard=true", "If-Match", `"9-9"`).is(412, "stale_revision")
	w.delete("/v1/pods/senders/entities/b?discard=true", "If-Match", tag).is(204)
	w.get("/v1/pods/senders/entities/b").is(404, "no_such_entity")
	w.stopStalling()
	w.delete("/v1/pods/senders/entities/a").is(204)
	w.delete("/v1/pods/senders/entities/c").is(204)
}

func TestRebuild(t *testing.T) {
	w := newWorld(t)
	w.docs()
	_, err := pod.Start(w.pods, entity.Sourced[sender]{
		Name: "logs",
		Commands: entity.Handlers[sender]{"grow": entity.On(func(c *entity.Context, _ *sender, m grow) error {
			c.Raise(grown(m))
			return nil
		})},
		Events: entity.Events[sender]{"grown": entity.Apply(func(s *sender, e grown) { s.Sent += e.N })},
	})
	require.NoError(t, err)
	const log = "/v1/pods/logs/entities/a"
	tag := w.post(log+"/messages/grow", `{"N":3}`).is(200).etag()
	rebuilt := w.post(log+"/rebuild", ``).is(200)
	require.Equal(t, tag, rebuilt.etag())
	require.Equal(t, `{"sent":3}`, w.get(log+"/state").is(200).body)
	w.post("/v1/pods/logs/entities/none/rebuild", ``).is(404, "no_such_entity")
	w.put(room+"/state", `{}`).is(201)
	w.post(room+"/rebuild", ``).is(422, "rejected")
	w.post(log+"/rebuild?timeout=0", ``).is(400, "bad_query")
	w.get(log+"/rebuild").is(405, "method_not_allowed")
}

// The entities of a volatile pod end with the server; the pod does not.
func TestVolatilePod(t *testing.T) {
	w := newWorld(t)
	require.Contains(t, w.put("/v1/pods/fleeting", `{"type":"document","durability":"volatile"}`).is(201).body, `"durability":"volatile"`)
	w.put("/v1/pods/fleeting/entities/a/state", `{"n":1}`, idHeader, "1").is(201)
	w.put("/v1/pods/fleeting/entities/a/state", `{"n":1}`, idHeader, "1").is(201)
	require.Equal(t, `{"n":1}`, w.get("/v1/pods/fleeting/entities/a/state").is(200).body)
	w.put("/v1/pods/fleeting", `{"type":"document"}`).is(409, "pod_exists")
	w.close()
	again := newWorldOn(t, w.mem.Again(), true)
	require.Contains(t, again.get("/v1/pods/fleeting").is(200).body, `"durability":"volatile"`)
	again.get("/v1/pods/fleeting/entities/a").is(404, "no_such_entity")
	again.put("/v1/pods/fleeting/entities/a/state", `{}`).is(201)
}
