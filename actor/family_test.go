package actor_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
)

func idle() actor.Props { return actor.PropsFunc(func(*actor.Context, any) error { return nil }) }

func TestOfManySpawnsOfOneNameOneSucceeds(t *testing.T) {
	sys := realSystem(t)
	for range 50 {
		parent := spawn(t, sys, "", idle())
		var won, lost atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if _, err := parent.Spawn("x", idle()); err == nil {
					won.Add(1)
				} else if errors.Is(err, actor.ErrAlreadyExists) {
					lost.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, won.Load())
		require.EqualValues(t, 7, lost.Load())
		require.Len(t, parent.Children(), 1)
	}
}

func TestOfManyEnsureChildOneCreates(t *testing.T) {
	sys := realSystem(t)
	for range 50 {
		parent := spawn(t, sys, "", idle())
		var created, started atomic.Int32
		refs := make([]*actor.Ref, 8)
		var wg sync.WaitGroup
		for i := range refs {
			wg.Go(func() {
				c, isNew, err := parent.EnsureChild("x", func() actor.Props {
					return actor.PropsOf(func() actor.Actor {
						started.Add(1)
						return actor.ActorFunc(func(ctx *actor.Context, msg any) error { ctx.Respond(msg); return nil })
					})
				})
				require.NoError(t, err)
				if isNew {
					created.Add(1)
				}
				refs[i] = c
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, created.Load())
		for _, c := range refs {
			require.Same(t, refs[0], c)
		}
		require.Equal(t, 1, ask(t, refs[0], 1))
		require.EqualValues(t, 1, started.Load())
	}
}

// The same where all see the child absent before one creates it.
func TestEnsureChildLooksAgainBeforeItCreates(t *testing.T) {
	for seed := range uint64(50) {
		sys, exec := seededSystem(t, seed)
		parent := spawn(t, sys, "parent", idle())
		created := 0
		var refs []*actor.Ref
		for range 4 {
			sys.Go(func() {
				c, isNew, err := parent.EnsureChild("x", func() actor.Props {
					_ = sys.Sleep(context.Background(), time.Millisecond)
					return idle()
				})
				require.NoError(t, err)
				refs = append(refs, c)
				if isNew {
					created++
				}
			})
		}
		exec.Run()
		require.Equal(t, 1, created)
		for _, c := range refs {
			require.Same(t, refs[0], c)
		}
	}
}

func TestEnsureChildReplacesAStoppingChildAtOnceAndTheParentWaitsForBoth(t *testing.T) {
	for seed := range uint64(100) {
		sys, exec := seededSystem(t, seed)
		parent := spawn(t, sys, "parent", idle())
		leave := sys.NewWaiter()
		var log []string
		slow, err := parent.Spawn("x", actor.PropsOf(func() actor.Actor {
			return &lastSeen{lifelike{&log, "old", nil}, func(*actor.Context) { _ = leave.Wait(context.Background()) }}
		}))
		require.NoError(t, err)
		exec.Run()
		slow.Stop()
		exec.Run()
		require.True(t, slow.Stopped())
		_, err = parent.Spawn("x", idle())
		require.ErrorIs(t, err, actor.ErrAlreadyExists)
		fresh, created, err := parent.EnsureChild("x", func() actor.Props { return lifelikeProps(&log, "new") })
		require.NoError(t, err)
		require.True(t, created)
		require.NotSame(t, slow, fresh)
		exec.Run()
		parent.Stop()
		exec.Run()
		require.Equal(t, []string{"start old", "start new", "stop new"}, log)
		_, _, err = parent.EnsureChild("y", idle)
		require.ErrorIs(t, err, actor.ErrStopped)
		leave.Wake()
		awaitStop(t, parent)
		require.Equal(t, "stop old", log[len(log)-1])
	}
}

func TestNamesAndPaths(t *testing.T) {
	sys, _ := seededSystem(t, 1)
	parent := spawn(t, sys, "parent", idle())
	for _, name := range []string{"a", "a/b", "a%2Fb", "%", "/", "ü €", "con", "...", strings.Repeat("n", 256)} {
		r, err := parent.Spawn(name, idle())
		require.NoError(t, err)
		require.Equal(t, name, r.Name())
		found, err := sys.Lookup(r.Path())
		require.NoError(t, err)
		require.Same(t, r, found, r.Path())
		require.Equal(t, 3, strings.Count(r.Path(), "/"))
	}
	for _, name := range []string{".", "..", "a\x00b", "\xff", strings.Repeat("n", 257)} {
		_, err := parent.Spawn(name, idle())
		require.ErrorIs(t, err, actor.ErrInvalid, "%q", name)
		_, _, err = parent.EnsureChild(name, idle)
		require.ErrorIs(t, err, actor.ErrInvalid, "%q", name)
	}
	_, _, err := parent.EnsureChild("", idle)
	require.ErrorIs(t, err, actor.ErrInvalid)
	_, err = parent.Spawn("x", actor.Props{})
	require.ErrorIs(t, err, actor.ErrInvalid)
	p := idle()
	p.Mailbox.Policy = actor.Fail
	_, err = parent.Spawn("x", p)
	require.ErrorIs(t, err, actor.ErrInvalid)
	for _, path := range []string{"", "user", "/nowhere", "/user/parent/x", "/user/parent/a/b", "//"} {
		_, err = sys.Lookup(path)
		require.ErrorIs(t, err, actor.ErrNotFound, "%q", path)
	}
	root, err := sys.Lookup("/")
	require.NoError(t, err)
	require.Same(t, sys.Root(), root)
	require.Equal(t, "/", root.String())
	_, err = sys.Lookup("/system/deadletters")
	require.NoError(t, err)
	one, two := spawn(t, sys, "", idle()), spawn(t, sys, "", idle())
	require.NotEqual(t, one.Name(), two.Name())
}

func TestChildrenAreSorted(t *testing.T) {
	sys, _ := seededSystem(t, 1)
	parent := spawn(t, sys, "parent", idle())
	require.Empty(t, parent.Children())
	for _, n := range []string{"c", "a", "d", "b"} {
		_, err := parent.Spawn(n, idle())
		require.NoError(t, err)
	}
	var names []string
	for _, c := range parent.Children() {
		names = append(names, c.Name())
	}
	require.Equal(t, []string{"a", "b", "c", "d"}, names)
	c, ok := parent.Child("c")
	require.True(t, ok)
	require.Same(t, parent, c.Parent())
}

func TestSendResolvesOrEndsAsADeadLetter(t *testing.T) {
	sys, exec := seededSystem(t, 1)
	p := idle()
	var claimed []string
	p.OnAbsent = func(name string, m actor.Message) bool {
		claimed = append(claimed, name)
		return name == "known"
	}
	parent := spawn(t, sys, "parent", p)
	r, err := parent.Spawn("r", recorderProps(nil))
	require.NoError(t, err)
	send := func(path string) error {
		var got error
		m := actor.Message{Payload: path, Reply: sys.OnReply(func(_ any, err error) { got = err })}
		require.NoError(t, sys.Send(path, m))
		exec.Run()
		return got
	}
	require.ErrorIs(t, send("/user/parent/r"), actor.ErrNoReply)
	require.Equal(t, []any{"/user/parent/r"}, ask(t, r, "?"))
	require.NoError(t, send("/user/parent/known"))
	require.ErrorIs(t, send("/user/parent/unknown"), actor.ErrNotFound)
	require.ErrorIs(t, send("/user/parent/x/y"), actor.ErrNotFound)
	require.ErrorIs(t, send("/user/x"), actor.ErrNotFound)
	require.ErrorIs(t, send("nowhere"), actor.ErrNotFound)
	require.Equal(t, []string{"known", "unknown"}, claimed)
	require.EqualValues(t, 4, sys.DeadLetters().Count())
	// The parent stopped: nobody to claim it, still no error.
	parent.Stop()
	exec.Run()
	require.NoError(t, sys.Send("/user/parent/known", actor.Message{Payload: 1}))
	require.EqualValues(t, 5, sys.DeadLetters().Count())
}

func TestDeadLettersSurviveTheirSubscribers(t *testing.T) {
	sys, exec := seededSystem(t, 1)
	dead := spawn(t, sys, "dead", idle())
	dead.Stop()
	exec.Run()
	var seen []any
	cancelBad := sys.DeadLetters().Subscribe(func(actor.ZombieMsg) { panic("bad subscriber") })
	defer sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) {
		seen = append(seen, z.Message.Payload)
		_ = dead.Tell(z) // and again to the dead
	})()
	require.NoError(t, dead.Tell(1))
	cancelBad()
	require.NoError(t, dead.Tell(2))
	require.Equal(t, []any{1, 2}, seen)
	letters, err := sys.Lookup("/system/deadletters")
	require.NoError(t, err)
	require.NoError(t, letters.Tell(3))
	exec.Run()
	require.Equal(t, []any{1, 2, 3}, seen)
}

func TestTwoSystemsShareNothing(t *testing.T) {
	a, b := realSystem(t), realSystem(t)
	ra := spawn(t, a, "x", idle())
	spawn(t, b, "x", idle())
	ra.Stop()
	awaitStop(t, ra)
	require.NoError(t, ra.Tell(1))
	require.EqualValues(t, 1, a.DeadLetters().Count())
	require.Zero(t, b.DeadLetters().Count())
}
