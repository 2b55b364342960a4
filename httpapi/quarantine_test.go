package httpapi_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/snapshot"
)

const unreadable = "/v1/quarantine/docs/room"

// damagedWorld has the entity docs/room, whose record cannot be read, and
// docs/whole.
func damagedWorld(t *testing.T) *world {
	t.Helper()
	mem := persisttest.NewMemory()
	first := newWorldOn(t, mem, true)
	first.docs()
	first.put(room+"/state", `{"a":1}`).is(201)
	first.put("/v1/pods/docs/entities/whole/state", `{"b":1}`).is(201)
	require.Equal(t, `{"items":[]}`, first.get("/v1/quarantine").is(200).body)
	first.close()
	mem.Damage(persist.Key{Pod: "docs", Name: "room"})
	return newWorldOn(t, mem, true)
}

func TestQuarantine(t *testing.T) {
	w := damagedWorld(t)
	w.get(room).is(503, "quarantined")
	w.get(room+"/state").is(503, "quarantined")
	w.put(room+"/state", `{}`).is(503, "quarantined")
	w.patch(room+"/state", `{}`).is(503, "quarantined")
	w.post(room+"/messages/merge", `{}`).is(503, "quarantined")
	var list struct {
		Items []map[string]any
		Next  string
	}
	w.get("/v1/pods/docs/entities").is(200).into(&list)
	require.Len(t, list.Items, 2)
	require.Len(t, list.Items[0], 2)
	require.Equal(t, "room", list.Items[0]["name"])
	require.NotEmpty(t, list.Items[0]["quarantined"])
	require.Equal(t, "whole", list.Items[1]["name"])
	w.get("/v1/quarantine").is(200).into(&list)
	require.Len(t, list.Items, 1)
	require.Equal(t, "docs", list.Items[0]["pod"])
	require.Equal(t, "room", list.Items[0]["name"])
	w.delete(room, "If-Match", `"9-9"`).is(204)
	w.get(room).is(404, "no_such_entity")
	require.Equal(t, `{"items":[]}`, w.get("/v1/quarantine").is(200).body)
	w.put(room+"/state", `{}`).is(201)
}

// An entity that nobody has read yet is shown, too, and found out by that.
func TestShowQuarantined(t *testing.T) {
	w := damagedWorld(t)
	var q httpapi.QuarantinedEntity
	w.get(unreadable).is(200).into(&q)
	require.Equal(t, "docs", q.Pod)
	require.Equal(t, "room", q.Name)
	require.Contains(t, q.Quarantined, "record is damaged")
	require.Nil(t, q.Record, "not even the envelope can be read")
	require.Contains(t, w.get("/v1/quarantine").is(200).body, `"name":"room"`)
	w.get("/v1/quarantine/docs/whole").is(404, "not_quarantined")
	w.get("/v1/quarantine/docs/none").is(404, "no_such_entity")
	w.get("/v1/quarantine/none/room").is(404, "no_such_pod")
	w.get("/v1/quarantine/BAD/room").is(400, "bad_name")
	w.get("/v1/quarantine/docs/").is(400, "bad_name")
	w.get(unreadable+"?timeout=soon").is(400, "bad_query")
	w.get("/v1/quarantine/docs").is(404, "not_found")
	w.get(unreadable+"/retry").is(405, "method_not_allowed")
}

// A record of a newer program is whole, and shown as it is.
func TestShowRecordOfNewerProgram(t *testing.T) {
	mem := persisttest.NewMemory()
	w := newWorldOn(t, mem, true)
	w.post("/v1/pods/gauges/entities/a%2Fb%20c/messages/add", `{"n":1}`).is(200)
	w.close()
	key := persist.Key{Pod: "gauges", Name: "a/b c"}
	r, err := mem.Load(t.Context(), key)
	require.NoError(t, err)
	old := r.State
	r.Schema, r.State, r.Revision = 99, []byte(strings.Repeat("x", 100_000)), 2
	out, err := mem.Commit(t.Context(), []persist.Unit{{Key: key, Life: r.Life, Expect: 1, Record: &r}})
	require.NoError(t, err)
	require.NoError(t, out[0].Err)

	const it = "/v1/quarantine/gauges/a%2Fb%20c"
	w = newWorldOn(t, mem, true)
	var q httpapi.QuarantinedEntity
	w.get(it).is(200).into(&q)
	require.NotNil(t, q.Record)
	require.Equal(t, r.Life, q.Record.Life)
	require.EqualValues(t, 2, q.Record.Revision)
	require.EqualValues(t, 99, q.Record.Schema)
	require.Equal(t, "msgpack", q.Record.Codec)
	require.Equal(t, 100_000, q.Record.Size)
	require.Equal(t, r.State[:64<<10], q.Record.State)
	w.post(it+"/retry", ``).is(503, "quarantined")

	// Something repairs it, and it can go on.
	r.Schema, r.State, r.Revision = 0, old, 3
	out, err = mem.Commit(t.Context(), []persist.Unit{{Key: key, Life: r.Life, Expect: 2, Record: &r}})
	require.NoError(t, err)
	require.NoError(t, out[0].Err)
	w.post("/v1/pods/gauges/entities/a%2Fb%20c/messages/add", `{"n":1}`).is(503, "quarantined")
	var e httpapi.Envelope
	again := w.post(it+"/retry", ``).is(200)
	again.into(&e)
	require.EqualValues(t, 3, e.Revision)
	require.Equal(t, e.Name, key.Name)
	require.Equal(t, again.etag(), w.get("/v1/pods/gauges/entities/a%2Fb%20c").is(200).etag())
	require.Equal(t, `{"items":[]}`, w.get("/v1/quarantine").is(200).body)
	w.post("/v1/pods/gauges/entities/a%2Fb%20c/messages/add", `{"n":1}`).is(200)
	w.get(it).is(404, "not_quarantined")
}

func TestRetryQuarantined(t *testing.T) {
	w := newWorld(t)
	w.docs()
	w.put(room+"/state", `{"a":1}`).is(201)
	w.post(unreadable+"/retry", ``).is(200) // it can be read
	w.post("/v1/quarantine/docs/none/retry", ``).is(404, "no_such_entity")
	w.post("/v1/quarantine/none/room/retry", ``).is(404, "no_such_pod")
	w.close()

	again := newWorldOn(t, w.mem.Again(), true)
	heal := again.store.OnLoads(func(k persist.Key) bool { return k.Name == "room" }, snapshot.ErrCorrupt)
	again.put(room+"/state", `{}`).is(503, "quarantined")
	again.post(unreadable+"/retry", ``).is(503, "quarantined")
	heal()
	again.put(room+"/state", `{}`).is(503, "quarantined")
	require.Contains(t, again.post(unreadable+"/retry", ``).is(200).body, `"state":{"a":1}`)
	again.put(room+"/state", `{}`).is(200)
	again.close()

	// In a pod whose type is unknown there is nothing but the record.
	mem := persisttest.NewMemory()
	typed := newWorldOn(t, mem, true)
	typed.post("/v1/pods/gauges/entities/g/messages/add", `{"n":4}`).is(200)
	typed.close()
	plain := newWorldOn(t, mem, false)
	heal = plain.store.OnLoads(func(k persist.Key) bool { return k.Name == "g" }, snapshot.ErrCorrupt)
	plain.get("/v1/quarantine/gauges/g").is(200)
	plain.post("/v1/quarantine/gauges/g/retry", ``).is(503, "quarantined")
	plain.delete("/v1/quarantine/gauges/g").is(409, "pod_read_only")
	heal()
	plain.post("/v1/quarantine/gauges/g/retry", ``).is(200)
}

func TestRemoveQuarantined(t *testing.T) {
	w := damagedWorld(t)
	w.delete("/v1/quarantine/docs/whole").is(404, "not_quarantined")
	w.get("/v1/pods/docs/entities/whole").is(200)
	w.delete("/v1/quarantine/docs/none").is(404, "no_such_entity")
	w.delete(unreadable+"?timeout=0").is(400, "bad_query")
	w.delete(unreadable).is(204)
	w.delete(unreadable).is(404, "no_such_entity")
	w.close()
	again := newWorldOn(t, w.mem.Again(), true)
	again.get(room).is(404, "no_such_entity")
	require.Equal(t, `{"items":[]}`, again.get("/v1/quarantine").is(200).body)
}
