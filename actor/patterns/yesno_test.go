package patterns_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
)

// question is what a desk delegates for.
type question struct{}

// desk delegates, and keeps what it handles itself.
type desk struct {
	cfg     patterns.YesNoConfig
	answers []bool
	got     []any
}

func (d *desk) Receive(ctx *actor.Context, msg any) error {
	switch m := msg.(type) {
	case question:
		child, err := ctx.Spawn("", patterns.DelegatedYesNo(d.cfg))
		if err != nil {
			return err
		}
		ctx.DelegateTo(child)
	case actor.DelegationEnded:
		d.answers = append(d.answers, m.Payload.(patterns.YesNo).Yes)
	case actor.Terminated:
	default:
		d.got = append(d.got, msg)
		if ctx.Message().Reply != nil {
			ctx.Respond(msg)
		}
	}
	return nil
}

func TestDelegatedYesNo(t *testing.T) {
	w := oneWorld(t)
	d := &desk{}
	ref := w.spawn("desk", actor.PropsOf(func() actor.Actor { return d }))
	for _, c := range []struct {
		text string
		want bool
	}{{"yes", true}, {" YES\n", true}, {"y", true}, {"no", false}, {"N", false}} {
		text, want := c.text, c.want
		d.answers, d.got = nil, nil
		ref.Tell(question{})
		waits := w.ask(ref, 1)
		unclear := w.ask(ref, "perhaps")
		ref.Tell("what")
		ref.Tell(2)
		require.Equal(t, patterns.YesNo{Yes: want}, w.answer(ref, text))
		ref.Tell("yes") // nobody's answer any more
		ref.Tell(3)
		w.exec.Run()
		require.Equal(t, []bool{want}, d.answers)
		require.Equal(t, []any{1, 2, "yes", 3}, d.got, "what was not its own comes back, in order")
		require.Equal(t, 1, waits.v)
		require.ErrorIs(t, unclear.err, actor.ErrInvalid)
		require.Empty(t, ref.Children(), "it has stopped")
	}
	require.Empty(t, w.dead)
}

func TestDelegatedYesNoWords(t *testing.T) {
	w := oneWorld(t)
	d := &desk{cfg: patterns.YesNoConfig{Yes: []string{"ja"}, No: []string{"nein"}, Again: "ja oder nein?"}}
	ref := w.spawn("desk", actor.PropsOf(func() actor.Actor { return d }))
	client := w.recorder("client")
	ref.Tell(question{})
	require.Equal(t, "ja oder nein?", w.answer(ref, "yes"))
	ref.TellFrom("si", client.ref)
	ref.Tell("si")
	ref.TellFrom("Ja", client.ref)
	w.exec.Run()
	require.Equal(t, []bool{true}, d.answers)
	require.Equal(t, []string{"ja oder nein?"}, of[string](client))
}

// Whatever comes meanwhile, and whenever: the first yes or no counts, and what
// is no answer reaches the delegator once.
func TestDelegatedYesNoUnderSeeds(t *testing.T) {
	underSeeds(t, func(w *world) {
		d := &desk{}
		ref := w.spawn("desk", actor.PropsOf(func() actor.Actor { return d }))
		ref.Tell(question{})
		n := 0
		for range 20 {
			w.later(10*time.Nanosecond, func() { // many in one instant
				n++
				ref.Tell(n)
			})
		}
		w.later(10*time.Nanosecond, func() { ref.Tell([]string{"yes", "no"}[w.IntN(2)]) })
		w.later(10*time.Nanosecond, func() { ref.Tell("or not") })
		w.exec.Run()
		require.Len(w.t, d.answers, 1)
		seen := map[any]int{}
		for _, m := range d.got {
			seen[m]++
		}
		for i := range n {
			require.Equal(w.t, 1, seen[i+1])
		}
		require.Empty(w.t, w.dead)
		require.Empty(w.t, ref.Children())
	})
}

func TestDelegatedYesNoThatStopsWithoutAnAnswer(t *testing.T) {
	w := oneWorld(t)
	d := &desk{}
	ref := w.spawn("desk", actor.PropsOf(func() actor.Actor { return d }))
	ref.Tell(question{})
	a := w.ask(ref, 1)
	for range 10_001 {
		ref.Tell(2)
	}
	w.exec.Run()
	full := deadOf[int](w)
	require.Len(t, full, 2)
	require.ErrorIs(t, full[0].Reason, actor.ErrMailboxFull)
	ref.Stop()
	w.exec.Run()
	require.ErrorIs(t, a.err, actor.ErrStopped)
}
