package actor_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

func echoProps() actor.Props {
	return actor.PropsFunc(func(ctx *actor.Context, msg any) error { ctx.Respond(msg); return nil })
}

// planted makes /user/a with the children x, y and z, and /user/a/x/leaf.
func planted(t *testing.T, sys *actor.System, top actor.Props) (a *actor.Ref) {
	t.Helper()
	a = spawn(t, sys, "a", top)
	for _, n := range []string{"z", "x", "y"} {
		_, err := a.Spawn(n, echoProps())
		require.NoError(t, err)
	}
	x, _ := a.Child("x")
	_, err := x.Spawn("leaf", echoProps())
	require.NoError(t, err)
	return a
}

func pathsOf(refs []*actor.Ref) []string {
	paths := []string{}
	for _, r := range refs {
		paths = append(paths, r.Path())
	}
	return paths
}

func TestSelectionsLeadWhereTheirPathSays(t *testing.T) {
	sys, _ := seededSystem(t, 1)
	a := planted(t, sys, echoProps())
	x, _ := a.Child("x")
	star, err := a.Spawn("*", echoProps())
	require.NoError(t, err)
	slash, err := a.Spawn("p/q%", echoProps())
	require.NoError(t, err)
	for _, c := range []struct {
		from *actor.Ref
		path string
		want []string
	}{
		{a, "x", []string{"/user/a/x"}},
		{a, "./x", []string{"/user/a/x"}},
		{a, "x/leaf", []string{"/user/a/x/leaf"}},
		{a, ".", []string{"/user/a"}},
		{a, "..", []string{"/user"}},
		{x, "../y", []string{"/user/a/y"}},
		{x, "../../a/./x/leaf/", []string{"/user/a/x/leaf"}},
		{x, "/user/a/z", []string{"/user/a/z"}},
		{x, "/", []string{"/"}},
		{x, "/system/deadletters", []string{"/system/deadletters"}},
		{x, "../*", []string{"/user/a/%2A", "/user/a/p%2Fq%25", "/user/a/x", "/user/a/y", "/user/a/z"}},
		{x, "/user/*/x", []string{"/user/a/x"}},
		{x, "/user/a/*/leaf", []string{"/user/a/x/leaf"}},
		{x, "/user/a/*/..", []string{"/user/a"}},
		{x, "*", []string{"/user/a/x/leaf"}},
		{a, star.Path(), []string{star.Path()}},
		{a, slash.Path(), []string{slash.Path()}},
		{a, "nobody", []string{}},
		{a, "x/nobody/leaf", []string{}},
		{a, "../../../../..", []string{}},
		{a, "x/leaf/*", []string{}},
	} {
		require.Equal(t, c.want, pathsOf(c.from.Select(c.path).Refs()), "%s from %v", c.path, c.from)
	}
	require.Equal(t, []string{"/user/a"}, pathsOf(sys.Select("a").Refs()))
	require.Equal(t, "/user/a/b", sys.Select("a/b").String())
	require.Equal(t, "/x", sys.Select("/x").String())
	found, err := sys.Lookup(star.Path())
	require.NoError(t, err)
	require.Same(t, star, found)
}

func TestSelectionsSendToAllThatTheyFind(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		planted(t, sys, echoProps())
		probe := actortest.NewProbe(t, sys, "probe")
		require.NoError(t, sys.Select("a/*").TellFrom("hello", probe.Ref()))
		var from []string
		for range 3 {
			m := probe.NextMessage()
			require.Equal(t, "hello", m.Payload)
			from = append(from, m.Sender.Name())
		}
		require.ElementsMatch(t, []string{"x", "y", "z"}, from)

		v, err := sys.Select("a/x").Ask(context.Background(), 1)
		require.NoError(t, err)
		require.Equal(t, 1, v)
		n, err := actor.Ask[int](context.Background(), sys.Select("a/*"), 2)
		require.NoError(t, err)
		require.Equal(t, 2, n)

		// A handler forwards to one, with the ask.
		f := spawn(t, sys, "f", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			return ctx.Forward(ctx.Select(msg.(string)))
		}))
		require.Equal(t, "../a/x/leaf", ask(t, f, "../a/x/leaf"))
		require.Equal(t, "../a/*", ask(t, f, "../a/*"))
		_, err = f.Ask(context.Background(), "../a/nobody")
		require.ErrorIs(t, err, actor.ErrNotFound)
	})
}

func TestASelectionThatFindsNobodyIsADeadLetter(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		dead := letters(sys)
		planted(t, sys, echoProps())
		for _, path := range []string{"/nowhere/x", "a/nobody", "a/nobody/x", "a/y/*", "../../..", "a/*/nobody"} {
			require.NoError(t, sys.Select(path).Tell(path))
			_, err := sys.Select(path).Ask(context.Background(), path)
			require.ErrorIs(t, err, actor.ErrNotFound)
			last := dead()[len(dead())-1]
			require.Equal(t, path, last.Message.Payload)
			require.ErrorIs(t, last.Reason, actor.ErrNotFound)
			require.Equal(t, sys.Select(path).String(), last.To)
		}
		require.Len(t, dead(), 12)
	})
}

func TestASelectionHonoursOnAbsent(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		var claimed []string
		top := echoProps()
		top.OnAbsent = func(name string, _ actor.Message) bool {
			claimed = append(claimed, name)
			return true
		}
		a := planted(t, sys, top)
		require.NoError(t, sys.Select("a/new").Tell(1))
		require.NoError(t, a.Select("x/../other").Tell(1))
		require.NoError(t, sys.Select("a/new/deeper").Tell(1))
		require.NoError(t, sys.Select("a/*/new").Tell(1))
		require.Equal(t, []string{"new", "other"}, claimed)
		require.EqualValues(t, 2, sys.DeadLetters().Count())
	})
}

func TestASelectionOfSeveralReportsWhoIsFull(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		dead := letters(sys)
		heldRecorder(t, sys, actor.Mailbox{Capacity: 1, Policy: actor.Fail})
		heldRecorderNamed(t, sys, "free", actor.Mailbox{Capacity: 3, Policy: actor.Fail})
		require.NoError(t, sys.Select("*").Tell(1))
		require.NoError(t, sys.Select("*").Tell(2))
		require.Len(t, dead(), 1)
		require.Equal(t, "/user/held", dead()[0].To)
		require.ErrorIs(t, sys.Select("held").Tell(3), actor.ErrMailboxFull)
	})
}

func TestFamily(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		a := planted(t, sys, echoProps())
		var all []string
		for r := range a.Tree() {
			all = append(all, r.Path())
		}
		require.Equal(t, []string{"/user/a", "/user/a/x", "/user/a/x/leaf", "/user/a/y", "/user/a/z"}, all)
		for range a.Tree() {
			break
		}
		type kin struct{ parent, grandparent *actor.Ref }
		b, err := a.Spawn("b", actor.PropsFunc(func(ctx *actor.Context, _ any) error {
			ctx.Respond(kin{ctx.Parent(), ctx.Grandparent()})
			return nil
		}))
		require.NoError(t, err)
		require.Equal(t, kin{a, sys.User()}, ask(t, b, "?"))
		require.True(t, a.StopChild("b"))
		awaitStop(t, b)
		require.False(t, a.StopChild("b"))
	})
}

// Props are values: who gets them in a message can spawn from them.
func TestPropsCanBeSentInMessages(t *testing.T) {
	forms(t, func(t *testing.T, sys *actor.System) {
		type create struct {
			name  string
			props actor.Props
		}
		parent := spawn(t, sys, "parent", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			switch m := msg.(type) {
			case create:
				child, err := ctx.Spawn(m.name, m.props)
				if err != nil {
					return err
				}
				ctx.Respond(child)
			case string:
				ctx.Respond(ctx.StopChild(m))
			}
			return nil
		}))
		p := recorderProps(nil)
		p.Mailbox = actor.Mailbox{Capacity: 7, Policy: actor.Fail}
		for _, name := range []string{"one", "two"} {
			child := ask(t, parent, create{name, p}).(*actor.Ref)
			require.NoError(t, child.Tell(name))
			require.Equal(t, []any{name}, ask(t, child, "?"))
			require.Equal(t, 7, child.MailboxCap())
			require.Same(t, parent, child.Parent())
		}
		require.Equal(t, true, ask(t, parent, "one"))
		require.Equal(t, false, ask(t, parent, "three"))
	})
}

func TestLoggerAddsThePath(t *testing.T) {
	var out bytes.Buffer
	plain := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	exec := actortest.NewSeeded(1)
	defer exec.Close()
	sys := actor.NewSystem("test", actor.Config{Executor: exec, Logger: slog.New(plain)})
	r := spawn(t, sys, "r", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		ctx.Logger().Debug("not enabled")
		ctx.Logger().Info("plain", "n", 1)
		ctx.Logger().With("k", "v").WithGroup("g").Info("more", "n", 2)
		ctx.Respond(nil)
		return nil
	}))
	ask(t, r, "x")
	require.NoError(t, sys.Stop(context.Background()))
	require.Equal(t, "level=INFO msg=plain n=1 actor=/user/r\nlevel=INFO msg=more actor=/user/r k=v g.n=2\n", out.String())
}
