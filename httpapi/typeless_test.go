package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// A program that does not know an event-sourced type shows what snapshots hold,
// and says of which entities only the type makes the state. Nothing else fails by
// them.
func TestEventSourcedWithoutItsType(t *testing.T) {
	mem := persisttest.NewMemory()
	first := newWorldOn(t, mem, true)
	first.docs()
	first.put(room+"/state", `{}`).is(201)
	_, err := pod.Start(first.pods, entity.Sourced[sender]{
		Name: "logs",
		Commands: entity.Handlers[sender]{"grow": entity.On(func(c *entity.Context, _ *sender, m grow) error {
			c.Raise(grown(m))
			return nil
		})},
		Events: entity.Events[sender]{"grown": entity.Apply(func(s *sender, e grown) { s.Sent += e.N })},
	})
	require.NoError(t, err)
	for _, name := range []string{"a", "b", "c"} {
		first.post("/v1/pods/logs/entities/"+name+"/messages/grow", `{"N":3}`).is(200)
	}
	whole := first.get("/v1/pods/logs/entities/a").is(200).body
	first.close() // saves a snapshot of each
	key := persist.Key{Pod: "logs", Name: "b"}
	r, err := mem.Load(t.Context(), key)
	require.NoError(t, err)
	o, err := mem.Commit(t.Context(), []persist.Unit{{Key: key, Life: r.Life, Expect: r.Revision,
		Rows: []persist.RowOp{{Kind: entity.SnapshotRows, ID: entity.StateSnapshot, Delete: true}}}})
	require.NoError(t, err)
	require.NoError(t, o[0].Err)

	w := newWorldOn(t, mem, true)
	require.Equal(t, whole, w.get("/v1/pods/logs/entities/a").is(200).body)
	require.Equal(t, `{"sent":3}`, w.get("/v1/pods/logs/entities/a/state").is(200).body)
	for _, path := range []string{"", "/state", "?revision=1"} {
		a := w.get("/v1/pods/logs/entities/b"+path).is(409, "pod_read_only")
		require.Contains(t, a.body, "run the program that defines it")
		require.Contains(t, a.body, "logs/b")
	}
	require.Contains(t, w.get("/v1/pods/logs/entities/b/history").is(200).body, `"grown"`)

	list := w.get("/v1/pods/logs/entities").is(200).body
	require.Contains(t, list, whole)
	require.Contains(t, list, `{"name":"b","quarantined":"logs/b is event-sourced`)
	require.Contains(t, list, `"name":"c","life"`)
	for _, path := range []string{"/v1/pods/logs/entities?filter=state.sent==3", "/v1/entities?count=true"} {
		found := w.get(path).is(200).body
		require.Contains(t, found, whole)
		require.Contains(t, found, `"unreadable":1`)
		require.Contains(t, found, `{"pod":"logs","name":"b","quarantined":"logs/b is event-sourced`)
	}
	exported := w.get("/v1/export").is(200).body
	require.Contains(t, exported, `"name":"b","quarantined":"logs/b is event-sourced`)
	require.Contains(t, exported, `"pod":"docs","name":"room"`)
	require.Contains(t, exported, `{"end":true,"entities":3,"skipped":1}`)

	require.Contains(t, w.get("/v1/quarantine").is(200).body, `{"pod":"logs","name":"b","quarantined":"logs/b is event-sourced`)
	require.Contains(t, w.get("/v1/quarantine/logs/b").is(200).body, `"quarantined":"logs/b is event-sourced`)
	w.post("/v1/quarantine/logs/b/retry", ``).is(409, "pod_read_only")
	w.get("/v1/quarantine/logs/a").is(404, "not_quarantined")
}
