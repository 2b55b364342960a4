package sim

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// owner is what each system has in its global store.
const owner = actor.Key[string]("sim.owner")

// stranger is a second system in the process, on a store of its own, with the
// same names (G9). It ends with the process and is forgotten.
type stranger struct {
	sys  *actor.System
	pods *pod.Pods
	sent []string
}

func (w *process) newStranger() *stranger {
	x := &stranger{sys: actor.NewSystem("sim", actor.Config{Executor: w.exec, Logger: slog.New(slog.DiscardHandler)})}
	var err error
	x.pods, err = pod.Open(x.sys, persisttest.NewMemory(), pod.Config{})
	w.must(err)
	typ := w.logs(things, entity.Sync())
	typ.Init = nil
	_, err = x.pods.Start(context.Background(), typ)
	w.must(err)
	owner.Set(x.sys.Global(), "stranger")
	return x
}

// visit sends the stranger's entity something.
func (w *process) visit() {
	if w.stranger == nil {
		return
	}
	id := fmt.Sprintf("stranger-%d", w.tick())
	w.stranger.sent = append(w.stranger.sent, id)
	p, err := w.stranger.pods.Pod(things)
	w.must(err)
	w.must(p.Tell(entityName(0), note{id}))
}

// checkStranger looks whether the two systems have kept to themselves.
func (w *process) checkStranger() {
	if w.stranger == nil {
		return
	}
	if name, there := owner.Get(w.sys.Global()); there {
		w.wrong("G9: the global store has the name %s of another system", name)
	}
	p, err := w.stranger.pods.Pod(things)
	w.must(err)
	var got []string
	if v, err := p.Get(context.Background(), entityName(0)); err == nil {
		s, err := decoded[journalled](&v)
		w.must(err)
		got = s.Log
	}
	if !slices.Equal(got, w.stranger.sent) {
		w.wrong("G9: the other system was sent %v and holds %v", w.stranger.sent, got)
	}
	for _, o := range w.history {
		for _, id := range o.log {
			if strings.HasPrefix(id, "stranger") {
				w.wrong("G9: %s holds %s, which was sent in another system", o.key(), id)
				return
			}
		}
	}
}
