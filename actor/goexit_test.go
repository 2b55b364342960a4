package actor_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
)

// exiter leaves its goroutine in Receive and in one more place.
type exiter struct{ where string }

func (e *exiter) leave(where string) {
	if e.where == where {
		runtime.Goexit()
	}
}

func (e *exiter) Receive(*actor.Context, any) error       { runtime.Goexit(); return nil }
func (e *exiter) PostStop(*actor.Context)                 { e.leave("PostStop") }
func (e *exiter) PreRestart(*actor.Context, error, any)   { e.leave("PreRestart") }
func (e *exiter) Resumed(*actor.Context, error)           { e.leave("Resumed") }
func (e *exiter) PreStart(*actor.Context) error           { e.leave("PreStart"); return nil }
func (e *exiter) ReceiveSystem(*actor.Context, any) error { e.leave("ReceiveSystem"); return nil }
func (e *exiter) directive() (d actor.Directive, always bool) {
	switch e.where {
	case "PreRestart", "PreStart":
		return actor.Restart, false
	case "Resumed":
		return actor.Resume, false
	}
	return actor.Stop, e.where == "Decide"
}

// Also who leaves again where the runtime deals with the first time ends, and so
// does the system: no worker is lost, and nobody waits for ever.
func TestWhoLeavesTwiceEndsNevertheless(t *testing.T) {
	for _, where := range []string{"PostStop", "PreRestart", "Resumed", "PreStart", "ReceiveSystem", "Decide", "events"} {
		t.Run(where, func(t *testing.T) {
			for range 20 {
				sys := realSystem(t) // a seeded one lets the caller end, which is the test
				e := &exiter{where}
				p := idle()
				p.Supervisor = &actor.Strategy{MinBackoff: -1, Decide: func(error) actor.Directive {
					d, leaves := e.directive()
					if leaves {
						runtime.Goexit()
					}
					return d
				}}
				parent := spawn(t, sys, "parent", p)
				if where == "events" {
					sys.Events().Subscribe(func(ev actor.Event) {
						if ev.Ref.Name() == "child" {
							runtime.Goexit()
						}
					})
				}
				child, err := parent.Spawn("child", actor.PropsOf(func() actor.Actor { return e }))
				require.NoError(t, err)
				child.TellSystem(1)
				_, err = child.Ask(context.Background(), 1)
				require.Error(t, err)
				child.Stop()
				awaitStop(t, child)
				until(t, sys, func() bool { _, there := parent.Child("child"); return !there })
				parent.Stop()
				awaitStop(t, parent)
				ask(t, spawn(t, sys, "after", actor.PropsFunc(func(ctx *actor.Context, _ any) error {
					ctx.Respond(nil)
					return nil
				})), 1)
			}
		})
	}
}

// What waits in the mailbox of one that stops is seen to, each message once and
// in order, also when whoever is told of it leaves his goroutine each time.
func TestWhatIsLeftOverOutlivesWhoLeaves(t *testing.T) {
	for _, absent := range []bool{true, false} {
		for range 20 {
			sys := realSystem(t)
			p := idle()
			var mu sync.Mutex
			var told []any
			leaves := func(payload any) {
				mu.Lock()
				told = append(told, payload)
				mu.Unlock()
				runtime.Goexit()
			}
			if absent {
				p.OnAbsent = func(_ string, m actor.Message) bool { leaves(m.Payload); return true }
			} else {
				sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) { leaves(z.Message.Payload) })
			}
			child, err := spawn(t, sys, "parent", p).Spawn("child", actor.Props{New: idle().New, Held: true})
			require.NoError(t, err)
			errs := make(chan error, 5)
			for i := range 5 {
				go func() {
					_, err := child.Ask(context.Background(), i)
					errs <- err
				}()
				until(t, sys, func() bool { return child.MailboxLen() == i+1 })
			}
			child.Stop()
			awaitStop(t, child)
			mu.Lock()
			require.Equal(t, []any{0, 1, 2, 3, 4}, told)
			mu.Unlock()
			for range 5 {
				require.ErrorIs(t, <-errs, actor.ErrStopped)
			}
		}
	}
}

// A stop that waits while the handler leaves is not forgotten.
func TestAStopOutlivesWhoLeaves(t *testing.T) {
	sys := realSystem(t)
	r := underParent(t, sys, resuming(), actor.PropsFunc(func(ctx *actor.Context, _ any) error {
		ctx.Self().Stop()
		runtime.Goexit()
		return nil
	}))
	require.NoError(t, r.Tell(1))
	awaitStop(t, r)
}
