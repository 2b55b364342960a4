package actor_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

// errand is what an actor handles itself while it delegates.
type errand struct{ n int }

func (errand) NonDelegated() {}

// delegator delegates to its child "d", which echoes with a mark.
func delegator(t *testing.T, sys *actor.System, own func(any)) *actor.Ref {
	return spawn(t, sys, "r", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		switch m := msg.(type) {
		case actor.Props:
			d, err := ctx.Spawn("", m)
			if err != nil {
				return err
			}
			ctx.DelegateTo(d)
			ctx.Respond(d)
		case errand, actor.DelegationEnded:
			own(m)
		default:
			own(m)
			if ctx.Message().Reply != nil {
				ctx.Respond(fmt.Sprint("self ", msg))
			}
		}
		return nil
	}))
}

func delegateProps() actor.Props {
	return actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		if m, ok := msg.(string); ok && m == "end" {
			ctx.EndDelegation(ctx.Parent(), "payload")
			return nil
		}
		ctx.Respond(fmt.Sprint("delegate ", msg))
		return nil
	})
}

func TestDelegationPassesMessagesOnUntilItEnds(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		var own []any
		r := delegator(t, sys, func(m any) { own = append(own, m) })
		require.Equal(t, "self 1", ask(t, r, 1))
		d := ask(t, r, delegateProps()).(*actor.Ref)
		require.Equal(t, "delegate 2", ask(t, r, 2))
		probe := actortest.NewProbe(t, sys, "probe")
		probe.Send(r, 3)
		m := probe.NextMessage()
		require.Equal(t, "delegate 3", m.Payload)
		require.Same(t, d, m.Sender, "the delegate had the sender")
		require.NoError(t, r.Tell(errand{4}))
		require.Equal(t, "delegate 5", ask(t, r, 5))
		require.NoError(t, r.Tell("end"))
		until(t, sys, func() bool { v, err := r.Ask(context.Background(), 6); return err == nil && v == "self 6" })
		own = slices.DeleteFunc(own, func(x any) bool { return x == 6 })
		require.Equal(t, []any{1, errand{4}, actor.DelegationEnded{Delegate: d, Payload: "payload"}}, own)
		require.False(t, d.Stopped())

		// It ends also with the delegate.
		own = nil
		d = ask(t, r, delegateProps()).(*actor.Ref)
		require.Equal(t, "delegate 7", ask(t, r, 7))
		d.Stop()
		awaitStop(t, d)
		require.Equal(t, "self 8", ask(t, r, 8))
		require.Equal(t, []any{actor.DelegationEnded{Delegate: d, Stopped: true}, 8}, own)
		require.Zero(t, sys.DeadLetters().Count())
	})
}

// What comes while the delegate stops waits, and is handled in order behind
// DelegationEnded: each message is handled once, by one of the two.
func TestDelegationLosesAndReordersNothingWhenTheDelegateRetires(t *testing.T) {
	for seed := range uint64(300) {
		sys, exec := seededSystem(t, seed)
		var log []any
		r := delegator(t, sys, func(m any) {
			if e, ok := m.(actor.DelegationEnded); ok {
				require.True(t, e.Stopped)
				m = "ended"
			}
			log = append(log, m)
		})
		ask(t, r, actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			log = append(log, -msg.(int))
			if msg.(int) > 3 {
				ctx.Retire()
			}
			return nil
		}))
		sys.Go(func() {
			for i := 1; i <= 20; i++ {
				_ = r.Tell(i)
				if i%3 == 0 {
					_ = sys.Sleep(context.Background(), time.Millisecond)
				}
			}
		})
		exec.Run()
		require.Zero(t, sys.DeadLetters().Count())
		require.Contains(t, log, "ended")
		ended := false
		n := 0
		for _, x := range log {
			if x == "ended" {
				ended = true
				continue
			}
			n++
			if ended {
				require.Equal(t, n, x)
			} else {
				require.Equal(t, -n, x)
			}
		}
		require.Equal(t, 20, n)
	}
}

// Watch and Unwatch mean the same while an actor delegates.
func TestWatchAndUnwatchOfADelegate(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		for _, watch := range []bool{true, false} {
			d := spawn(t, sys, "", delegateProps())
			got := make(chan any, 10)
			r := spawn(t, sys, "", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
				if msg != "begin" {
					got <- msg
					return nil
				}
				if !watch {
					ctx.Watch(d)
				}
				ctx.DelegateTo(d)
				if watch {
					ctx.Watch(d)
				} else {
					ctx.Unwatch(d)
				}
				return nil
			}))
			require.NoError(t, r.Tell("begin"))
			until(t, sys, func() bool { return r.Load() == 0 })
			d.Stop()
			awaitStop(t, d)
			until(t, sys, func() bool { return r.Load() == 0 })
			require.NoError(t, r.Tell("after"))
			until(t, sys, func() bool { return r.Load() == 0 })
			close(got)
			var all []any
			for m := range got {
				all = append(all, m)
			}
			want := []any{actor.DelegationEnded{Delegate: d, Stopped: true}}
			if watch {
				want = append(want, actor.Terminated{Ref: d})
			}
			require.Equal(t, append(want, "after"), all)
		}
	})
}

// Who has heard of an end, and then delegates to who has ended, is told that this
// was in vain, but not of the end again; and Unwatch holds until Terminated comes.
func TestADelegateThatHasEndedIsHeardOfOnce(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		for _, child := range []bool{true, false} {
			for _, unwatch := range []bool{true, false} {
				var got []any
				var d *actor.Ref
				r := spawn(t, sys, "", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
					switch msg := msg.(type) {
					case string:
						defer ctx.Respond(nil)
						switch msg {
						case "begin":
							if child {
								d, _ = ctx.Spawn("", delegateProps())
							}
							ctx.Watch(d)
						case "delegate":
							ctx.DelegateTo(d)
						case "again":
							ctx.Watch(d)
							ctx.DelegateTo(d)
						}
					case actor.DelegationEnded:
						got = append(got, "delegation")
						if unwatch {
							ctx.Unwatch(d)
						}
					case actor.Terminated:
						got = append(got, "terminated")
					}
					return nil
				}))
				if !child {
					d = spawn(t, sys, "", delegateProps())
				}
				ask(t, r, "begin")
				d.Stop()
				awaitStop(t, d)
				for range 2 {
					until(t, sys, func() bool { return r.Load() == 0 })
					_, _ = r.Ask(context.Background(), "delegate")
				}
				until(t, sys, func() bool { return r.Load() == 0 })
				require.Equal(t, []any{"terminated", "delegation", "delegation"}, got)
				got = nil
				ask(t, r, "again")
				until(t, sys, func() bool { return r.Load() == 0 })
				ask(t, r, "")
				if unwatch {
					require.Equal(t, []any{"delegation"}, got)
				} else {
					require.Equal(t, []any{"delegation", "terminated"}, got, "it asked for that")
				}
			}
		}
	})
}

// An end that is not the delegate's leaves the user's own watch as it was, and
// takes the delegation's away.
func TestTheEndOfADelegationLeavesOnlyTheOwnWatch(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		for _, watch := range []bool{true, false} {
			for _, end := range []string{"undelegate", "restart"} {
				d := spawn(t, sys, "", delegateProps())
				var got []any
				r := spawn(t, sys, "", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
					switch m := msg.(type) {
					case errand:
						if end == "restart" {
							return errTest
						}
						ctx.Undelegate()
					case actor.Terminated:
						got = append(got, m)
					case string:
						if watch {
							ctx.Watch(d)
						}
						ctx.DelegateTo(d)
					default:
						ctx.Respond("self")
					}
					return nil
				}))
				require.NoError(t, r.Tell("begin"))
				require.NoError(t, r.Tell(errand{}))
				require.Equal(t, "self", ask(t, r, 1))
				d.Stop()
				awaitStop(t, d)
				require.Equal(t, "self", ask(t, r, 1))
				if watch {
					require.Equal(t, []any{actor.Terminated{Ref: d}}, got)
				} else {
					require.Empty(t, got)
				}
			}
		}
	})
}

// What waits for the end of a delegate outlives a restart, and a stop makes
// dead letters of it.
func TestWhatADelegateDidNotTakeIsNotLost(t *testing.T) {
	for seed := range uint64(50) {
		for _, end := range []string{"restart", "stop"} {
			sys, exec := seededSystem(t, seed)
			leave := sys.NewWaiter()
			d := spawn(t, sys, "d", actor.PropsFunc(func(*actor.Context, any) error { return nil }))
			slow, err := d.Spawn("slow", actor.PropsFunc(func(*actor.Context, any) error { return leave.Wait(context.Background()) }))
			require.NoError(t, err)
			require.NoError(t, slow.Tell("x"))
			var got []any
			r := spawn(t, sys, "r", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
				switch msg.(type) {
				case *actor.Ref:
					ctx.DelegateTo(d)
				case errand:
					return errTest
				default:
					got = append(got, msg)
				}
				return nil
			}))
			exec.RunFor(time.Second)
			require.NoError(t, r.Tell(d))
			d.Stop() // and its child keeps it from ending
			exec.RunFor(time.Second)
			require.NoError(t, r.Tell(1))
			require.NoError(t, r.Tell(2))
			exec.RunFor(time.Second)
			if end == "stop" {
				dead := letters(sys)
				r.Stop()
				exec.RunFor(time.Second)
				require.Len(t, dead(), 2)
				require.Equal(t, 1, dead()[0].Message.Payload)
			} else {
				require.NoError(t, r.Tell(errand{}))
				require.NoError(t, r.Tell(3))
				exec.RunFor(time.Second)
				require.Equal(t, []any{1, 2, 3}, got)
			}
			leave.Wake()
			exec.Run()
		}
	}
}

func TestDelegationIsUndoneByRestartAndByUndelegate(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		d := spawn(t, sys, "d", delegateProps())
		full := heldRecorder(t, sys, actor.Mailbox{Capacity: 1, Policy: actor.Fail})
		require.NoError(t, full.Tell(0))
		r := spawn(t, sys, "r", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			switch m := msg.(type) {
			case *actor.Ref:
				ctx.Watch(d)
				ctx.DelegateTo(full)
				ctx.DelegateTo(m)
				ctx.EndDelegation(ctx.Self(), "by no delegate")
				_ = ctx.Tell(ctx.Self(), errand{2})
				require.Panics(t, func() { ctx.DelegateTo(ctx.Self()) })
			case errand:
				switch m.n {
				case 0:
					ctx.Undelegate()
				case 1:
					return errTest
				}
			case actor.Terminated:
				_ = ctx.System().Select("/user/probe").Tell(wrapped{m})
			default:
				ctx.Respond("self")
			}
			return nil
		}))
		for n := range 2 {
			require.NoError(t, r.Tell(d))
			require.Equal(t, "delegate x", ask(t, r, "x"))
			require.NoError(t, r.Tell(errand{n}))
			require.Equal(t, "self", ask(t, r, "x"))
		}
		require.NoError(t, r.Tell(full))
		_, err := r.Ask(context.Background(), "x")
		require.ErrorIs(t, err, actor.ErrMailboxFull)
		probe := actortest.NewProbe(t, sys, "probe")
		d.Stop()
		require.NoError(t, probe.Next().(wrapped).Reason, "its own watch holds")
	})
}

// wrapped is a Terminated that is passed on: bare, it would be dropped by whoever
// does not watch.
type wrapped struct{ actor.Terminated }
