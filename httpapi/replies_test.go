package httpapi_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/pod"
)

type (
	oven struct {
		Fired int   `json:"fired"`
		Past  []int `json:"past"`
	}
	fire struct {
		Panic bool `json:"panic,omitempty"`
	}
	heat struct{}
	look struct{}
)

// smoke is a reply that cannot be written as JSON.
type smoke struct {
	Panic   bool    `json:"panic"`
	Degrees float64 `json:"degrees"`
}

func (s smoke) MarshalJSON() ([]byte, error) {
	if s.Panic {
		panic("an odd reply")
	}
	return json.Marshal(s.Degrees)
}

const ovenOf = "/v1/pods/ovens/entities/"

func (w *world) ovens() {
	w.t.Helper()
	_, err := pod.Start(w.pods, entity.Type[oven]{Name: "ovens", Handlers: entity.Handlers[oven]{
		"fire": entity.Reply(func(_ *entity.Context, o *oven, m fire) (smoke, error) {
			o.Fired++
			return smoke{Panic: m.Panic, Degrees: math.NaN()}, nil
		}),
		"heat": entity.Reply(func(_ *entity.Context, o *oven, _ heat) ([]int, error) {
			o.Fired++
			o.Past = append(o.Past, o.Fired)
			return o.Past, nil
		}),
		"look": entity.Query(func(_ *entity.Context, o *oven, _ look) (oven, error) { return *o, nil }),
	}})
	require.NoError(w.t, err)
}

// A reply that cannot be written as JSON fails its message, which changes nothing.
func TestAReplyThatIsNoJSONChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.ovens()
	w.post(ovenOf+"new/messages/fire", `{}`).is(500, "handler_failed")
	w.get(ovenOf+"new").is(404, "no_such_entity")

	w.post(ovenOf+"o/messages/heat", ``).is(200)
	before := w.get(ovenOf + "o").is(200)
	for _, body := range []string{`{}`, `{"panic":true}`} {
		for _, headers := range [][]string{nil, {idHeader, "k" + body}} {
			a := w.post(ovenOf+"o/messages/fire", body, headers...).is(500, "handler_failed")
			require.Contains(t, a.body, "changed nothing")
		}
		ended := w.future(w.post(ovenOf+"o/messages/fire", body, prefer, "respond-async"))
		require.Equal(t, "failed", ended.Status)
		a := w.post("/v1/batch", `[{"pod":"ovens","name":"o","type":"fire","body":`+body+`}]`).is(200)
		require.Contains(t, a.body, "changed nothing")
	}
	require.Equal(t, before.body, w.get(ovenOf+"o").is(200).body)
}

// The answers of all handlers have the ETag of the revision behind them.
func TestRepliesHaveAnETag(t *testing.T) {
	w := newWorld(t)
	w.ovens()
	first := w.post(ovenOf+"o/messages/heat", ``, idHeader, "1").is(200)
	require.Equal(t, `[1]`, first.body)
	require.Equal(t, w.get(ovenOf+"o").etag(), first.etag())
	second := w.post(ovenOf+"o/messages/heat", ``, "If-Match", first.etag()).is(200)
	require.Equal(t, `[1,2]`, second.body)
	require.Equal(t, w.get(ovenOf+"o").etag(), second.etag())
	require.Equal(t, second.etag(), w.post(ovenOf+"o/messages/look", ``).is(200).etag())
	w.post(ovenOf+"o/messages/heat", ``, "If-Match", first.etag()).is(412, "stale_revision")

	again := w.post(ovenOf+"o/messages/heat", ``, idHeader, "1").is(200)
	require.Equal(t, first.body, again.body, "the first answer")
	require.Equal(t, first.etag(), again.etag())
	third := w.post("/v1/batch", `[{"pod":"ovens","name":"o","type":"heat"}]`).is(200)
	tag, err := json.Marshal(w.get(ovenOf + "o").etag())
	require.NoError(t, err)
	require.Contains(t, third.body, `"etag":`+string(tag))
}
