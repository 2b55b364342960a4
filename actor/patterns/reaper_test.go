package patterns_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
)

// count is what children are asked for.
type count struct{}

// counter answers count after a time, or never; with an error below zero.
func counter(n int, after time.Duration) actor.Props {
	return actor.PropsOf(func() actor.Actor {
		var waiting []*actor.Promise
		return actor.ActorFunc(func(ctx *actor.Context, msg any) error {
			if _, ok := msg.(count); ok && after != 0 {
				waiting = append(waiting, ctx.Defer())
				if after > 0 {
					ctx.ScheduleOnce(after, ctx.Self(), "now")
				}
				return nil
			}
			if n < 0 {
				return errTest
			}
			if msg == "now" {
				waiting[0].Complete(n)
				waiting = waiting[1:]
				return nil
			}
			ctx.Respond(n)
			return nil
		})
	})
}

func targets(refs ...*actor.Ref) (all []actor.Target) {
	for _, r := range refs {
		all = append(all, r)
	}
	return all
}

func TestReaperGathersInOrder(t *testing.T) {
	w := oneWorld(t)
	reaper := w.spawn("reaper", patterns.Reaper(patterns.ReaperConfig{}))
	a := w.spawn("a", counter(1, 3*time.Second))
	b := w.spawn("b", counter(2, 0))
	c := w.spawn("c", counter(3, time.Second))
	begun := w.sys.Now()
	r := w.answer(reaper, patterns.Reap{Message: count{}, Targets: targets(a, b, c, b)}).(patterns.Reaped)
	require.Equal(t, patterns.Reaped{Complete: true, Results: []patterns.ReapResult{
		{Target: a, Value: 1}, {Target: b, Value: 2}, {Target: c, Value: 3}, {Target: b, Value: 2},
	}}, r)
	require.Equal(t, []int{1, 2, 3, 2}, patterns.ValuesOf[int](r))
	require.Empty(t, patterns.ValuesOf[string](r))

	client := w.recorder("client")
	reaper.TellFrom(patterns.Reap{Message: count{}, Targets: targets(b)}, client.ref)
	w.exec.Run()
	require.Equal(t, []int{2}, patterns.ValuesOf[int](of[patterns.Reaped](client)[0]))
	require.Empty(t, w.dead)
	require.Equal(t, 3*time.Second, w.sys.Now().Sub(begun), "no timer is left")
}

func TestReaperOfNobodyIsCompleteAtOnce(t *testing.T) {
	w := oneWorld(t)
	reaper := w.spawn("reaper", patterns.Reaper(patterns.ReaperConfig{}))
	begun := w.sys.Now()
	for _, r := range []patterns.Reap{{}, {Children: w.spawn("childless", patterns.Null())}} {
		got := w.answer(reaper, r).(patterns.Reaped)
		require.True(t, got.Complete)
		require.Empty(t, got.Results)
	}
	require.Equal(t, begun, w.sys.Now())
}

func TestReaperDeadline(t *testing.T) {
	w := oneWorld(t)
	reaper := w.spawn("reaper", patterns.Reaper(patterns.ReaperConfig{Timeout: 2 * time.Second}))
	quick, late := w.spawn("quick", counter(1, 0)), w.spawn("late", counter(2, 3*time.Second))
	never := w.spawn("never", counter(3, -1))
	begun := w.sys.Now()
	r := w.answer(reaper, patterns.Reap{Message: count{}, Targets: targets(late, quick, never)}).(patterns.Reaped)
	require.Equal(t, 2*time.Second, w.sys.Now().Sub(begun))
	require.False(t, r.Complete)
	require.Equal(t, []int{1}, patterns.ValuesOf[int](r))
	require.ErrorIs(t, r.Results[0].Err, actor.ErrTimeout)
	require.ErrorIs(t, r.Results[2].Err, actor.ErrTimeout)
	w.exec.Run()
	require.Len(t, deadOf[int](w), 1, "an answer that comes later")
	require.Len(t, w.dead, 1)
	require.False(t, w.answer(reaper, patterns.Reap{Message: count{}, Targets: targets(late), Timeout: time.Second}).(patterns.Reaped).Complete)
	require.True(t, w.answer(reaper, patterns.Reap{Message: count{}, Targets: targets(late), Timeout: time.Minute}).(patterns.Reaped).Complete)
}

func TestReaperErrorsAreResults(t *testing.T) {
	w := oneWorld(t)
	reaper := w.spawn("reaper", patterns.Reaper(patterns.ReaperConfig{}))
	good, bad, gone := w.spawn("good", counter(1, 0)), w.spawn("bad", counter(-1, 0)), w.spawn("gone", counter(3, 0))
	gone.Stop()
	full := patterns.Null()
	full.Held, full.Mailbox = true, actor.Mailbox{Capacity: 1, Policy: actor.Fail}
	stuck := w.spawn("stuck", full)
	stuck.Tell("fills")
	w.exec.Run()
	all := append(targets(good, bad, gone, stuck), nil, (*actor.Ref)(nil))
	r := w.answer(reaper, patterns.Reap{Message: count{}, Targets: all}).(patterns.Reaped)
	require.False(t, r.Complete)
	require.NoError(t, r.Results[0].Err)
	for i, want := range []error{errTest, actor.ErrStopped, actor.ErrMailboxFull, actor.ErrInvalid} {
		require.ErrorIs(t, r.Results[i+1].Err, want)
	}
	require.Error(t, r.Results[5].Err)
	a := w.ask(reaper, "no Reap")
	w.exec.Run()
	require.ErrorIs(t, a.err, actor.ErrInvalid)
}

func TestReaperLeavesOutChildrenThatStop(t *testing.T) {
	w := oneWorld(t)
	reaper := w.spawn("reaper", patterns.Reaper(patterns.ReaperConfig{}))
	host := w.spawn("host", patterns.Null())
	stays, err := host.Spawn("stays", counter(1, 0))
	require.NoError(t, err)
	goes, err := host.Spawn("goes", counter(2, time.Minute))
	require.NoError(t, err)
	a := w.ask(reaper, patterns.Reap{Message: count{}, Children: host})
	b := w.ask(reaper, patterns.Reap{Message: count{}, Targets: targets(stays, goes), Timeout: 20 * time.Second})
	w.exec.RunFor(time.Second)
	require.Zero(t, a.ended)
	host.StopChild("goes")
	w.exec.RunFor(20 * time.Second)
	// What it had taken over ends at the deadline.
	require.Equal(t, patterns.Reaped{Complete: true, Results: []patterns.ReapResult{{Target: stays, Value: 1}}}, a.v)
	require.Len(t, b.v.(patterns.Reaped).Results, 2, "who is asked by name is a result")

	// One that stops with the question in its mailbox.
	held := counter(2, 0)
	held.Held = true
	waits, err := host.Spawn("waits", held)
	require.NoError(t, err)
	c := w.ask(reaper, patterns.Reap{Message: count{}, Children: host})
	w.exec.RunFor(time.Second)
	require.Zero(t, c.ended)
	waits.Stop()
	w.exec.RunFor(time.Second)
	require.Equal(t, patterns.Reaped{Complete: true, Results: []patterns.ReapResult{{Target: stays, Value: 1}}}, c.v)
}

// A question that comes to the reaper itself is no answer: by name, and from a
// child that passes it back.
func TestReaperIsAskedItself(t *testing.T) {
	w := oneWorld(t)
	host := w.spawn("host", patterns.Null())
	one, err := host.Spawn("one", counter(1, 0))
	require.NoError(t, err)
	reaper := w.spawn("reaper", patterns.Reaper(patterns.ReaperConfig{}))
	r := w.answer(reaper, patterns.Reap{Message: count{}, Targets: targets(reaper, one)}).(patterns.Reaped)
	require.False(t, r.Complete)
	require.ErrorIs(t, r.Results[0].Err, actor.ErrInvalid, "it takes Reap and nothing else")
	inner := patterns.Reap{Message: count{}, Children: host}
	r = w.answer(reaper, patterns.Reap{Message: inner, Targets: targets(reaper)}).(patterns.Reaped)
	require.Equal(t, []int{1}, patterns.ValuesOf[int](patterns.ValuesOf[patterns.Reaped](r)[0]))

	_, err = host.Spawn("passes", actor.PropsFunc(func(ctx *actor.Context, _ any) error { return ctx.Forward(ctx.Sender()) }))
	require.NoError(t, err)
	all, err := host.Spawn("all", patterns.ReapTransform(patterns.ReapTransformConfig{}))
	require.NoError(t, err)
	r = w.answer(all, count{}).(patterns.Reaped)
	require.Equal(t, patterns.Reaped{Complete: true, Results: []patterns.ReapResult{{Target: one, Value: 1}}}, r)
}

func TestReaperLimitAndStop(t *testing.T) {
	w := oneWorld(t)
	reaper := w.spawn("reaper", patterns.Reaper(patterns.ReaperConfig{Limit: 2}))
	never := w.spawn("never", counter(3, -1))
	request := patterns.Reap{Message: count{}, Targets: targets(never)}
	a, b := w.ask(reaper, request), w.ask(reaper, request)
	w.exec.RunFor(time.Second)
	c := w.ask(reaper, request)
	w.exec.RunFor(time.Second)
	require.ErrorIs(t, c.err, actor.ErrMailboxFull)
	reaper.Stop()
	w.exec.Run()
	require.ErrorIs(t, a.err, actor.ErrStopped)
	require.ErrorIs(t, b.err, actor.ErrStopped)
	require.Len(t, deadOf[patterns.Reap](w), 3)
}

// sumOf is a request to a ReapTransform.
type sumOf struct{ times int }

func sum(request any, r patterns.Reaped) (any, error) {
	total := 0
	for _, n := range patterns.ValuesOf[int](r) {
		total += n
	}
	switch times := request.(sumOf).times; {
	case times < 0:
		panic(errTest)
	case times == 0:
		return nil, errTest
	case !r.Complete:
		return fmt.Sprint("at least ", total*times), nil
	default:
		return total * times, nil
	}
}

func TestReapTransform(t *testing.T) {
	w := oneWorld(t)
	host := w.spawn("host", patterns.Null())
	for i := range 4 {
		_, err := host.Spawn("", counter(i, time.Duration(i)*time.Second))
		require.NoError(t, err)
	}
	transform := func(name string, cfg patterns.ReapTransformConfig) *actor.Ref {
		cfg.Ask = func(any) any { return count{} }
		r, err := host.Spawn(name, patterns.ReapTransform(cfg))
		require.NoError(t, err)
		return r
	}
	sums := transform("sums", patterns.ReapTransformConfig{Transform: sum})
	short := transform("short", patterns.ReapTransformConfig{Transform: sum, Timeout: 1500 * time.Millisecond})
	plain := transform("plain", patterns.ReapTransformConfig{})
	require.Equal(t, 6, w.answer(sums, sumOf{1}))
	require.Equal(t, "at least 2", w.answer(short, sumOf{2}))
	require.Len(t, w.answer(plain, sumOf{}).(patterns.Reaped).Results, 4, "reapers are not counted")
	for _, times := range []int{0, -1} {
		a := w.ask(sums, sumOf{times})
		w.exec.Run()
		require.ErrorIs(t, a.err, errTest)
	}
	client := w.recorder("client")
	sums.TellFrom(sumOf{3}, client.ref)
	w.exec.Run()
	require.Equal(t, 18, client.got[0].Payload)
	require.Same(t, host, client.got[0].Sender, "as if from the host")

	// One that others ask by name is a target as any other.
	reaper, err := host.Spawn("reaper", patterns.Reaper(patterns.ReaperConfig{}))
	require.NoError(t, err)
	all := w.answer(reaper, patterns.Reap{Message: sumOf{1}, Targets: targets(sums, sums)}).(patterns.Reaped)
	require.Equal(t, []int{6, 6}, patterns.ValuesOf[int](all))
}

// Reapers under one host, asked at the same time, while children come, answer
// late, fail and stop: none sees another, and each has all of the children.
func TestReapersUnderOneHostUnderSeeds(t *testing.T) {
	underSeeds(t, func(w *world) {
		host := w.spawn("host", patterns.Null())
		calm := w.IntN(2) == 0
		want, values := 0, 0
		child := func(i int) {
			n, after := 1+w.IntN(9), time.Duration(w.IntN(4))*500*time.Millisecond
			if !calm && w.IntN(4) == 0 {
				n = -1
			}
			if !calm && w.IntN(4) == 0 {
				after = -1
			}
			_, err := host.Spawn(fmt.Sprint("child-", i), counter(n, after))
			require.NoError(w.t, err)
			want += n
			values++
		}
		spawn := func(p actor.Props) *actor.Ref {
			r, err := host.Spawn("", p)
			require.NoError(w.t, err)
			return r
		}
		var reapers []*actor.Ref
		for i := range 6 {
			child(i)
			if w.IntN(2) == 0 {
				reapers = append(reapers, spawn(patterns.ReapTransform(patterns.ReapTransformConfig{
					Ask: func(any) any { return count{} }, Timeout: 3 * time.Second,
				})))
			}
		}
		gatherer := spawn(patterns.Reaper(patterns.ReaperConfig{Timeout: 3 * time.Second}))
		var all []*asked
		for range 6 {
			ask := func() {
				if len(reapers) > 0 && w.IntN(2) == 0 {
					all = append(all, w.ask(reapers[w.IntN(len(reapers))], "go"))
				} else {
					all = append(all, w.ask(gatherer, patterns.Reap{Message: count{}, Children: host}))
				}
			}
			if w.IntN(2) == 0 { // before anything has started
				ask()
			} else {
				w.later(time.Second, ask)
			}
			// A reaper that has just come, and may go soon.
			w.later(time.Second, func() {
				r := spawn(patterns.ReapTransform(patterns.ReapTransformConfig{Timeout: 3 * time.Second}))
				if w.IntN(2) == 0 {
					r.Stop()
				}
			})
		}
		if !calm {
			w.later(2*time.Second, func() { host.StopChild("child-3") })
			w.later(2*time.Second, gatherer.Stop)
		}
		w.exec.Run()
		for _, a := range all {
			if a.err != nil {
				require.False(w.t, calm)
				require.ErrorIs(w.t, a.err, actor.ErrStopped)
				continue
			}
			r := a.v.(patterns.Reaped)
			seen := map[string]bool{}
			ok := true
			for _, one := range r.Results {
				name := one.Target.(*actor.Ref).Name()
				require.Contains(w.t, name, "child-", "no reaper is seen: %v", one)
				require.False(w.t, seen[name])
				seen[name] = true
				ok = ok && one.Err == nil
			}
			require.Equal(w.t, ok, r.Complete)
			require.GreaterOrEqual(w.t, len(seen), 5)
			if calm {
				require.True(w.t, r.Complete)
				got := 0
				for _, n := range patterns.ValuesOf[int](r) {
					got += n
				}
				require.Equal(w.t, want, got)
				require.Len(w.t, r.Results, values)
			}
		}
	})
}
