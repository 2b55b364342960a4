package actor_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
)

type numbered struct{ from, n int }

func TestMessagesOfOneSenderArriveInOrder(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		const senders, each = 4, 300
		last := make([]int, senders)
		sink := spawn(t, sys, "sink", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			switch m := msg.(type) {
			case numbered:
				if last[m.from]+1 != m.n {
					return fmt.Errorf("sender %d: %d after %d", m.from, m.n, last[m.from])
				}
				last[m.from] = m.n
			default:
				ctx.Respond(append([]int(nil), last...))
			}
			return nil
		}))
		var all []*actor.Ref
		for i := range senders {
			all = append(all, spawn(t, sys, "", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
				if msg == "go" {
					for n := 1; n <= each/2; n++ {
						require.NoError(t, ctx.Tell(sink, numbered{i, n}))
					}
					return ctx.Tell(ctx.Self(), "more")
				}
				for n := each/2 + 1; n <= each; n++ {
					require.NoError(t, ctx.Tell(sink, numbered{i, n}))
				}
				ctx.StopSelf()
				return nil
			})))
		}
		for _, r := range all {
			require.NoError(t, r.Tell("go"))
		}
		for _, r := range all {
			awaitStop(t, r)
		}
		require.Equal(t, []int{each, each, each, each}, ask(t, sink, "?"))
	})
}
