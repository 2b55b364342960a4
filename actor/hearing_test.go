package actor_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
)

// hearer is a parent that notes which ends of children it hears of, and calls
// the functions that it is sent.
type hearer struct {
	mu  sync.Mutex
	got []actor.Terminated
	ref *actor.Ref
}

func (h *hearer) props() actor.Props {
	return actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		switch m := msg.(type) {
		case actor.Terminated:
			h.mu.Lock()
			defer h.mu.Unlock()
			h.got = append(h.got, m)
		case func(*actor.Context) error:
			defer ctx.Respond(nil)
			return m(ctx)
		}
		return nil
	})
}

func newHearer(t *testing.T, sys *actor.System, change func(p *actor.Props)) *hearer {
	h := &hearer{}
	p := h.props()
	if change != nil {
		change(&p)
	}
	h.ref = spawn(t, sys, "", p)
	return h
}

// do calls f in the parent's turn and waits for it.
func (h *hearer) do(t *testing.T, f func(ctx *actor.Context)) {
	t.Helper()
	ask(t, h.ref, func(ctx *actor.Context) error { f(ctx); return nil })
}

// heard returns what the parent has heard of so far, and forgets it.
func (h *hearer) heard(t *testing.T) []actor.Terminated {
	t.Helper()
	h.do(t, func(*actor.Context) {})
	h.mu.Lock()
	defer h.mu.Unlock()
	got := h.got
	h.got = nil
	return got
}

// child does what it is told to, by function.
func child(t *testing.T, parent *actor.Ref) *actor.Ref {
	t.Helper()
	c, err := parent.Spawn("", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		if f, ok := msg.(func(*actor.Context) error); ok {
			return f(ctx)
		}
		return nil
	}))
	require.NoError(t, err)
	return c
}

func end(t *testing.T, c *actor.Ref) {
	t.Helper()
	c.Stop()
	awaitStop(t, c)
}

func TestAParentHearsOfEachEndAndItsCause(t *testing.T) {
	ends := []struct {
		name   string
		end    func(c *actor.Ref) error
		cause  actor.StopCause
		reason error
	}{
		{"stop", func(c *actor.Ref) error { c.Stop(); return nil }, actor.CauseStop, nil},
		{"stop by name", func(c *actor.Ref) error { c.Parent().StopChild(c.Name()); return nil }, actor.CauseStop, nil},
		{"itself", func(c *actor.Ref) error {
			return c.Tell(func(ctx *actor.Context) error { ctx.StopSelf(); return nil })
		}, actor.CauseSelf, nil},
		{"retired", func(c *actor.Ref) error {
			return c.Tell(func(ctx *actor.Context) error { ctx.Retire(); return nil })
		}, actor.CauseSelf, nil},
		{"itself with an error", func(c *actor.Ref) error {
			return c.Tell(func(ctx *actor.Context) error { ctx.StopSelf(); return errTest })
		}, actor.CauseFailure, errTest},
		{"poison", func(c *actor.Ref) error { return c.Tell(actor.PoisonPill{}) }, actor.CausePoison, nil},
		{"failure", func(c *actor.Ref) error {
			return c.Tell(func(*actor.Context) error { return errTest })
		}, actor.CauseFailure, errTest},
		{"dead-man's handle", func(c *actor.Ref) error {
			return c.Tell(func(ctx *actor.Context) error { ctx.DieIn(time.Millisecond); return nil })
		}, actor.CauseDieIn, actor.ErrDieIn},
	}
	forms(t, func(t *testing.T, sys *actor.System) {
		h := newHearer(t, sys, func(p *actor.Props) {
			p.Supervisor = &actor.Strategy{Decide: func(error) actor.Directive { return actor.Stop }}
		})
		for _, e := range ends {
			c := child(t, h.ref)
			require.NoError(t, e.end(c))
			awaitStop(t, c)
			got := h.heard(t)
			require.Len(t, got, 1, e.name)
			require.Same(t, c, got[0].Ref, e.name)
			require.Equal(t, e.cause, got[0].Cause, "%s: %v", e.name, got[0].Cause)
			require.ErrorIs(t, got[0].Reason, e.reason, e.name)
		}
	})
}

func TestAParentHearsOfEachOfManyChildrenOnce(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		h := newHearer(t, sys, nil)
		const n = 100
		open := make(map[*actor.Ref]bool, n)
		for range n {
			open[child(t, h.ref)] = true
		}
		h.do(t, func(ctx *actor.Context) {
			for _, c := range ctx.Children() {
				ctx.Watch(c) // as well
				ctx.Stop(c)
			}
		})
		until(t, sys, func() bool { return len(h.ref.Children()) == 0 })
		got := h.heard(t)
		require.Len(t, got, n)
		for _, m := range got {
			require.True(t, open[m.Ref])
			delete(open, m.Ref)
		}
	})
}

func TestWatchAndUnwatchOfOnesChildren(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		h := newHearer(t, sys, nil)
		told := func(c *actor.Ref) []actor.Terminated { return []actor.Terminated{{Ref: c}} }

		c := child(t, h.ref)
		h.do(t, func(ctx *actor.Context) { ctx.Unwatch(c) })
		end(t, c)
		require.Empty(t, h.heard(t), "unwatched")
		h.do(t, func(ctx *actor.Context) { ctx.Watch(c); ctx.Watch(c) })
		require.Equal(t, told(c), h.heard(t), "watched when it was dead")
		h.do(t, func(ctx *actor.Context) { ctx.Watch(c) })
		require.Equal(t, told(c), h.heard(t), "and again")
		h.do(t, func(ctx *actor.Context) { ctx.Watch(c); ctx.Unwatch(c) })
		require.Empty(t, h.heard(t), "watched and not")

		c = child(t, h.ref)
		h.do(t, func(ctx *actor.Context) { ctx.Unwatch(c); ctx.Watch(c) })
		end(t, c)
		require.Equal(t, told(c), h.heard(t), "unwatched and watched")

		c = child(t, h.ref)
		end(t, c)
		require.Equal(t, told(c), h.heard(t))
		h.do(t, func(ctx *actor.Context) { ctx.Watch(c) })
		require.Equal(t, told(c), h.heard(t), "watched when it had been heard of")
	})
}

// What is queued when the parent changes its mind is judged when it comes.
func TestWatchAndUnwatchWhileTheChildsEndIsQueued(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		for _, last := range []string{"watch", "unwatch", "unwatch, watch"} {
			h := newHearer(t, sys, nil)
			c := child(t, h.ref)
			h.do(t, func(ctx *actor.Context) {
				ctx.Stop(c)
				_ = sys.AwaitStop(context.Background(), c) // Terminated is queued now
				if last != "watch" {
					ctx.Unwatch(c)
				}
				if last != "unwatch" {
					ctx.Watch(c)
				}
			})
			want := 1
			if last == "unwatch" {
				want = 0
			}
			require.Len(t, h.heard(t), want, last)
		}
	})
}

func TestAParentThatIgnoresChildrenHearsOfThoseItWatches(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		h := newHearer(t, sys, func(p *actor.Props) { p.IgnoreChildren = true })
		a, b := child(t, h.ref), child(t, h.ref)
		h.do(t, func(ctx *actor.Context) { ctx.Watch(b) })
		end(t, a)
		end(t, b)
		require.Equal(t, []actor.Terminated{{Ref: b}}, h.heard(t))

		held := newHearer(t, sys, func(p *actor.Props) { p.IgnoreChildren, p.Held = true, true })
		end(t, child(t, held.ref))
		require.Zero(t, held.ref.MailboxLen(), "nothing is sent")
	})
}

func TestAnEndIsNotHeardOfAgainWhenSomebodyPassesItOn(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		h := newHearer(t, sys, nil)
		c := child(t, h.ref)
		end(t, c)
		require.NoError(t, h.ref.Tell(actor.Terminated{Ref: c}))
		require.Len(t, h.heard(t), 1)
	})
}

func TestTheActorsOfTheRuntimeIgnoreTheirChildren(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		end(t, spawn(t, sys, "", idle()))
		until(t, sys, func() bool { return sys.User().Load() == 0 })
		require.Zero(t, sys.DeadLetters().Count())
	})
}

func TestARestartedParentHearsOnlyOfWatchedChildrenThatTheRestartStopped(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		for _, watch := range []bool{false, true} {
			h := newHearer(t, sys, nil)
			c := child(t, h.ref)
			h.do(t, func(ctx *actor.Context) {
				if watch {
					ctx.Watch(c)
				}
			})
			require.NoError(t, h.ref.Tell(func(*actor.Context) error { return errTest }))
			awaitStop(t, c)
			got := h.heard(t) // after the backoff, by the new instance
			if watch {
				require.Equal(t, []actor.Terminated{{Ref: c, Cause: actor.CauseParent}}, got)
			} else {
				require.Empty(t, got)
			}
			c = child(t, h.ref)
			end(t, c)
			require.Equal(t, []actor.Terminated{{Ref: c}}, h.heard(t), "the new instance's")
		}
	})
}

func TestOfADelegateThatIsAChildComesTheEndOfTheDelegation(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		var ended []actor.DelegationEnded
		h := &hearer{}
		p := h.props()
		h.ref = spawn(t, sys, "", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			switch m := msg.(type) {
			case actor.DelegationEnded:
				ended = append(ended, m)
				return nil
			case *actor.Ref:
				ctx.DelegateTo(m)
				return nil
			case mine:
				m(ctx)
				ctx.Respond(nil)
				return nil
			}
			return p.New().Receive(ctx, msg)
		}))
		do := func(f func(ctx *actor.Context)) { ask(t, h.ref, mine(f)) }

		c := child(t, h.ref)
		do(func(ctx *actor.Context) { ctx.DelegateTo(c) })
		end(t, c)
		require.Empty(t, h.heard(t))
		do(func(*actor.Context) {
			require.Equal(t, []actor.DelegationEnded{{Delegate: c, Stopped: true}}, ended)
			ended = nil
		})

		c = child(t, h.ref)
		do(func(ctx *actor.Context) { ctx.DelegateTo(c); ctx.Undelegate() })
		end(t, c)
		require.Len(t, h.heard(t), 1, "the delegation was over")

		c = child(t, h.ref)
		do(func(ctx *actor.Context) { ctx.Unwatch(c); ctx.DelegateTo(c); ctx.Undelegate() })
		end(t, c)
		require.Empty(t, h.heard(t), "not heeded before the delegation either")

		c = child(t, h.ref)
		do(func(ctx *actor.Context) { ctx.Watch(c); ctx.DelegateTo(c) })
		end(t, c)
		require.Len(t, h.heard(t), 1, "watched besides")
	})
}

// mine is a call that no delegate gets.
type mine func(ctx *actor.Context)

func (mine) NonDelegated() {}

// A watcher, PostStop and the events agree on what ended an actor.
func TestCausesFromAbove(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		var mu sync.Mutex
		events := make(map[*actor.Ref]actor.StopCause)
		sys.Events().Subscribe(func(e actor.Event) {
			if e.Kind == actor.ActorStopped {
				mu.Lock()
				defer mu.Unlock()
				events[e.Ref] = e.Cause
			}
		})
		watcher := newHearer(t, sys, nil)
		own := make(map[string]actor.StopCause)
		grandchild := func(parent *hearer) *actor.Ref {
			c, err := parent.ref.Spawn("", actor.PropsOf(func() actor.Actor {
				return &causes{func(ctx *actor.Context) {
					mu.Lock()
					defer mu.Unlock()
					own[ctx.Self().Path()] = ctx.StopCause()
				}}
			}))
			require.NoError(t, err)
			require.Nil(t, ask(t, c, "started?"))
			watcher.do(t, func(ctx *actor.Context) { ctx.Watch(c) })
			return c
		}
		agree := func(want actor.StopCause, c *actor.Ref) {
			awaitStop(t, c)
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, want, own[c.Path()])
			require.Equal(t, want, events[c])
		}

		h := newHearer(t, sys, nil)
		c := grandchild(h)
		require.NoError(t, h.ref.Tell(func(*actor.Context) error { return errTest }))
		agree(actor.CauseParent, c)
		require.Equal(t, []actor.Terminated{{Ref: c, Cause: actor.CauseParent}}, watcher.heard(t))

		c = grandchild(h)
		h.ref.Stop()
		agree(actor.CauseParent, c)
		require.Equal(t, []actor.Terminated{{Ref: c, Cause: actor.CauseParent}}, watcher.heard(t))

		c = grandchild(newHearer(t, sys, nil))
		stopSystem(t, sys)
		agree(actor.CauseSystem, c)
	})
}

type causes struct{ note func(ctx *actor.Context) }

func (c *causes) Receive(ctx *actor.Context, _ any) error { ctx.Respond(nil); return nil }
func (c *causes) PostStop(ctx *actor.Context)             { c.note(ctx) }

func TestCausesHaveNames(t *testing.T) {
	seen := make(map[string]bool)
	for c := actor.CauseStop; c <= actor.CauseSystem; c++ {
		require.NotContains(t, c.String(), "cause(")
		require.False(t, seen[c.String()])
		seen[c.String()] = true
	}
	require.Equal(t, "cause(99)", actor.StopCause(99).String())
}
