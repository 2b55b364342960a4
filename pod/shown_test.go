package pod_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// vault marshals itself.
type vault struct{ coins int }

func (v vault) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]int{"coins": v.coins}) }
func (v *vault) UnmarshalJSON(data []byte) error {
	var m map[string]int
	err := json.Unmarshal(data, &m)
	v.coins = m["coins"]
	return err
}

type fillVault struct{ Coins int }

// TestStatesThatMarshalThemselves: they are shown as what they say, in reads, in
// the history and to those who watch; not as a text that holds it.
func TestStatesThatMarshalThemselves(t *testing.T) {
	w := emptyWorld(t, 1, persisttest.NewMemory(), pod.Config{})
	defer w.close()
	h, err := pod.Start(w.pods, entity.Type[vault]{Name: "vaults", Handlers: entity.Handlers[vault]{
		"fill": entity.On(func(_ *entity.Context, v *vault, m fillVault) error { v.coins += m.Coins; return nil }),
	}})
	w.must(err)
	watch, err := w.pods.Watch(bg, pod.WatchRequest{})
	w.must(err)
	defer watch.Close()
	_, err = w.wait(w.sendTo(h.Ref("v"), fillVault{7}))
	w.must(err)
	const want = `{"coins":7}`
	v, err := h.Pod.Get(bg, "v")
	w.must(err)
	state, err := v.JSON()
	w.must(err)
	require.Equal(t, want, string(state))
	page, err := h.History(bg, "v", pod.HistoryOptions{})
	w.must(err)
	require.Equal(t, want, string(page.Revisions[0].State))
	e, err := watch.Next(bg)
	w.must(err)
	require.Equal(t, want, string(e.State))
	typed, err := h.Get(bg, "v")
	w.must(err)
	require.Equal(t, 7, typed.State.coins)
}
