package pod_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// TestHandlerMayChangeItsMessage: the repeat is known by the message as it came.
func TestHandlerMayChangeItsMessage(t *testing.T) {
	type many struct{ IDs []string }
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(func(t *entity.Type[ledger]) {
		t.Handlers["many"] = entity.On(func(_ *entity.Context, l *ledger, m many) error {
			for i := range m.IDs {
				m.IDs[i] = "seen " + m.IDs[i]
			}
			l.Log = append(l.Log, m.IDs...)
			return nil
		})
	}), pod.Config{})
	defer w.close()
	for range 2 {
		m, err := w.h.Spec().Parse("many", []byte(`{"IDs":["a","b"]}`))
		w.must(err)
		w.must(m.SetID("1"))
		_, err = w.ask("x", m)
		require.NoError(t, err)
	}
}

// TestRepeatCreatesNothing: a repeated answer announces no creation.
func TestRepeatCreatesNothing(t *testing.T) {
	w := newWorld(t, 1, persisttest.NewMemory(), ledgers(nil), pod.Config{})
	defer w.close()
	n := 0
	w.pods.OnCreated(func(pod.CreatedChild) { n++ })
	for range 3 {
		_, err := w.ask("x", entity.WithID("1", add{"a"}))
		w.must(err)
	}
	require.Equal(t, 1, n)
}

// TestRejectionsAreCounted: remembered rejections count with what they say.
func TestRejectionsAreCounted(t *testing.T) {
	store := persisttest.NewMemory()
	w := newWorld(t, 1, store, ledgers(nil), pod.Config{})
	_, err := w.ask("x", add{"1"})
	w.must(err)
	for i := range 100 {
		_, err = w.ask("x", entity.WithID(fmt.Sprint(i), refuse{strings.Repeat("r", 256<<10)}))
		require.Error(t, err)
	}
	rows, err := store.RowsOf(t.Context(), persist.Key{Pod: "ledgers", Name: "x"})
	w.must(err)
	n := 0
	for _, r := range rows {
		n += len(r.Value)
	}
	require.LessOrEqual(t, n, 3<<20)
	w.close()
}

// TestReplyMustBeEncodable: a reply that could not be remembered is refused when
// the pod starts, not when somebody sends an id.
func TestReplyMustBeEncodable(t *testing.T) {
	type get struct{ A int }
	type out struct {
		n int
		X float64
	}
	_, err := ledgers(func(t *entity.Type[ledger]) {
		t.Handlers["get"] = entity.Reply(func(*entity.Context, *ledger, get) (out, error) { return out{n: 7}, nil })
	}).Spec()
	require.ErrorIs(t, err, entity.ErrDefinition)
}
