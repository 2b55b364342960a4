package patterns_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
)

// parcel goes through a pipeline and collects where it has been.
type parcel struct {
	patterns.Returnable
	id    int
	trail string
	do    map[string]string // by stage
}

func (p parcel) at(stage string) parcel {
	p.trail += stage
	return p
}

// post is the props of all stages, which do what a parcel says.
func post() actor.Props {
	return actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		p, ok := msg.(parcel)
		if !ok {
			if ctx.Sender() == ctx.Self() { // of its own PipeTo
				return nil
			}
			ctx.Respond(fmt.Sprint(msg, " at ", ctx.Self().Name()))
			return nil
		}
		name := ctx.Self().Name()
		p = p.at(name)
		switch p.do[name] {
		case "keep":
		case "tell":
			ctx.Tell(ctx.Sender(), p)
		case "split":
			ctx.Tell(ctx.Parent(), p)
			ctx.Tell(ctx.Parent(), p)
		case "fail":
			return errTest
		case "panic":
			panic(errTest)
		case "hang":
			ctx.Defer()
		case "stop":
			ctx.Defer()
			ctx.StopSelf()
		case "later":
			reply, sys := ctx.Defer(), ctx.System()
			ctx.PipeTo(ctx.Self(), func(c context.Context) (any, error) {
				if err := sys.Sleep(c, 50*time.Millisecond); err != nil {
					return nil, err
				}
				reply.Complete(p)
				return nil, nil
			})
		default:
			ctx.Respond(p)
		}
		return nil
	})
}

func stages(names ...string) (all []patterns.Stage) {
	for _, n := range names {
		all = append(all, patterns.Stage{Name: n, Props: post()})
	}
	return all
}

func (w *world) pipeline(cfg patterns.PipelineConfig, stages ...patterns.Stage) *actor.Ref {
	p, err := patterns.Pipeline(cfg, stages...)
	require.NoError(w.t, err)
	pipe := w.spawn("pipe", p)
	w.exec.RunFor(0)
	return pipe
}

func TestPipelineStagesOfOneTypeFeedEachOtherAndNeverThemselves(t *testing.T) {
	w := oneWorld(t)
	pipe := w.pipeline(patterns.PipelineConfig{}, stages("a", "b", "c", "d")...)
	client := w.recorder("client")
	require.Equal(t, "abcd", w.answer(pipe, parcel{}).(parcel).trail)
	pipe.TellFrom(parcel{do: map[string]string{"b": "tell", "c": "later"}}, client.ref)
	w.exec.Run()
	require.Empty(t, client.got, "what a stage tells goes on as its own")
	require.Equal(t, "abcd", deadOf[parcel](w)[0].Message.Payload.(parcel).trail, "and comes out to nobody")
	pipe.TellFrom(parcel{do: map[string]string{"c": "later"}}, client.ref)
	w.exec.Run()
	require.Len(t, client.got, 1)
	require.Equal(t, "abcd", of[parcel](client)[0].trail)
	require.Same(t, pipe, client.got[0].Sender)
	require.Len(t, pipe.Children(), 4)
}

func TestPipelineUnknownSendersFeedTheFirstStage(t *testing.T) {
	w := oneWorld(t)
	pipe := w.pipeline(patterns.PipelineConfig{}, stages("a", "b")...)
	// An actor of the stages' kind that is none, and one below a stage.
	other := w.spawn("b", post())
	below, err := pipe.Children()[1].Spawn("b", post())
	require.NoError(t, err)
	for _, from := range []*actor.Ref{nil, other, below} {
		a := w.askFrom(pipe, parcel{}, from)
		w.exec.Run()
		require.Equal(t, "ab", a.v.(parcel).trail)
	}
}

func TestPipelineOfNoStagesAnswersWithTheMessage(t *testing.T) {
	w := oneWorld(t)
	require.Equal(t, 7, w.answer(w.pipeline(patterns.PipelineConfig{}), 7))
}

func TestPipelineReturnsReturnablesToTheirOrigin(t *testing.T) {
	w := oneWorld(t)
	pipe := w.pipeline(patterns.PipelineConfig{}, stages("a", "b")...)
	origin, sender := w.recorder("origin"), w.recorder("sender")
	back := patterns.Returnable{Origin: origin.ref}
	pipe.TellFrom(parcel{Returnable: back, id: 1}, sender.ref)
	pipe.TellFrom(parcel{Returnable: back, id: 2, do: map[string]string{"a": "split"}}, sender.ref)
	pipe.TellFrom(parcel{Returnable: back, id: 3, do: map[string]string{"b": "fail"}}, sender.ref)
	w.exec.Run()
	require.Empty(t, sender.got)
	var ids []int
	for _, p := range of[parcel](origin) {
		require.Equal(t, "ab", p.trail)
		ids = append(ids, p.id)
	}
	require.ElementsMatch(t, []int{1, 2, 2}, ids, "also what a stage made of it")
	failed := of[patterns.StageFailed](origin)
	require.Len(t, failed, 1)
	require.Equal(t, 3, failed[0].Message.(parcel).id)
	// An ask has its answer, whoever the origin is.
	require.Equal(t, 4, w.answer(pipe, parcel{Returnable: back, id: 4}).(parcel).id)
	require.Len(t, origin.got, 4)
	require.Empty(t, w.dead)
	// A nil pointer that has the method is nobody's.
	pipe.TellFrom((*parcel)(nil), sender.ref)
	w.exec.Run()
	require.Equal(t, "<nil> at a at b", sender.got[0].Payload)
}

func TestPipelineFailingStageAnswersTheOriginalSender(t *testing.T) {
	for _, do := range []string{"fail", "panic", "stop"} {
		for _, at := range []string{"a", "b", "c"} {
			t.Run(do+" at "+at, func(t *testing.T) {
				w := oneWorld(t)
				pipe := w.pipeline(patterns.PipelineConfig{}, stages("a", "b", "c")...)
				client := w.recorder("client")
				bad := parcel{id: 1, do: map[string]string{at: do}}
				pipe.TellFrom(bad, client.ref)
				if do == "stop" { // what waits for a stage that stops fails with it
					w.exec.Run()
				}
				pipe.TellFrom(parcel{id: 2}, client.ref)
				w.exec.Run()
				failed := of[patterns.StageFailed](client)
				require.Len(t, failed, 1)
				require.Equal(t, at, failed[0].Stage)
				require.Equal(t, 1, failed[0].Message.(parcel).id)
				cause := errTest
				if do == "stop" {
					cause = actor.ErrStopped
				}
				require.ErrorIs(t, failed[0], cause)
				for _, m := range client.got {
					require.Same(t, pipe, m.Sender)
				}
				require.Len(t, of[parcel](client), 1, "the next message comes through")

				a := w.ask(pipe, bad)
				w.exec.Run()
				var f patterns.StageFailed
				require.ErrorAs(t, a.err, &f)
				require.Equal(t, at, f.Stage)
				require.ErrorIs(t, a.err, cause)
				require.Equal(t, "abc", w.answer(pipe, parcel{}).(parcel).trail, "the stage is there again")

				dead := len(deadOf[parcel](w))
				pipe.Tell(bad)
				w.exec.Run()
				all := deadOf[parcel](w)
				require.Len(t, all, dead+1, "told by nobody, it is a dead letter")
				require.ErrorIs(t, all[dead].Reason, cause)
			})
		}
	}
}

func TestPipelineStageThatKeepsAMessage(t *testing.T) {
	w := oneWorld(t)
	pipe := w.pipeline(patterns.PipelineConfig{}, stages("a", "b", "c")...)
	client := w.recorder("client")
	kept := parcel{do: map[string]string{"b": "keep"}}
	pipe.TellFrom(kept, client.ref)
	a := w.ask(pipe, kept)
	w.exec.Run()
	require.Empty(t, client.got)
	require.Empty(t, w.dead)
	require.ErrorIs(t, a.err, actor.ErrNoReply)
}

func TestPipelineErrorsLeaveAStageItsState(t *testing.T) {
	w := oneWorld(t)
	made := 0
	pipe := w.pipeline(patterns.PipelineConfig{}, patterns.Stage{Props: actor.PropsOf(func() actor.Actor {
		made++
		sum := 0
		return actor.ActorFunc(func(ctx *actor.Context, msg any) error {
			n := msg.(int)
			if n < 0 {
				return errTest
			}
			sum += n
			ctx.Respond(sum)
			return nil
		})
	})})
	require.Equal(t, 1, w.answer(pipe, 1))
	for range 100 {
		require.ErrorIs(t, func() error { a := w.ask(pipe, -1); w.exec.Run(); return a.err }(), errTest)
	}
	require.Equal(t, 3, w.answer(pipe, 2))
	require.Equal(t, 1, made)
}

func TestPipelineHubFansOut(t *testing.T) {
	w := oneWorld(t)
	hub := patterns.PipelineHub("hub", append(stages("x", "y"), patterns.Stage{Props: post()})...)
	pipe := w.pipeline(patterns.PipelineConfig{}, append(append(stages("a"), hub), stages("b")...)...)
	client := w.recorder("client")
	pipe.TellFrom(parcel{}, client.ref)
	w.exec.Run()
	var trails []string
	for _, p := range of[parcel](client) {
		trails = append(trails, p.trail)
	}
	require.ElementsMatch(t, []string{"axb", "ayb", "ahub.3b"}, trails)
	require.Contains(t, trails, w.answer(pipe, parcel{}).(parcel).trail, "an ask is answered by one of them")

	client.got = nil
	pipe.TellFrom(parcel{do: map[string]string{"x": "fail", "y": "keep"}}, client.ref)
	a := w.ask(pipe, parcel{do: map[string]string{"x": "fail", "y": "keep"}})
	b := w.ask(pipe, parcel{do: map[string]string{"x": "fail", "y": "keep", "hub.3": "keep"}})
	c := w.ask(pipe, parcel{do: map[string]string{"x": "keep", "y": "keep", "hub.3": "panic"}})
	d := w.ask(pipe, parcel{do: map[string]string{"x": "keep", "y": "keep", "hub.3": "keep"}})
	w.exec.Run()
	require.Len(t, client.got, 2)
	require.Len(t, of[patterns.StageFailed](client), 1, "one way failed, and one came to the end")
	require.NoError(t, a.err)
	require.Equal(t, "ahub.3b", a.v.(parcel).trail)
	require.ErrorIs(t, b.err, errTest, "no way came to the end")
	require.ErrorIs(t, c.err, errTest, "the failure says more than those that kept it")
	require.ErrorIs(t, d.err, actor.ErrNoReply)
}

// Feeds are a hub at the beginning whose members tell the pipeline what they
// find.
func TestPipelineHubOfFeeds(t *testing.T) {
	w := oneWorld(t)
	feed := actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		if msg == "go" {
			ctx.Tell(ctx.Parent(), parcel{}.at(ctx.Self().Name()))
		}
		return nil
	})
	got := w.recorder("got")
	sink := actor.PropsFunc(func(ctx *actor.Context, msg any) error { return ctx.Tell(got.ref, msg) })
	pipe := w.pipeline(patterns.PipelineConfig{},
		patterns.PipelineHub("feeds", patterns.Stage{Name: "x", Props: feed}, patterns.Stage{Name: "y", Props: feed}),
		stages("a")[0], patterns.Stage{Name: "sink", Props: sink})
	for _, child := range pipe.Children() {
		child.Tell("go")
	}
	w.exec.Run()
	var trails []string
	for _, p := range of[parcel](got) {
		trails = append(trails, p.trail)
	}
	require.ElementsMatch(t, []string{"xa", "ya"}, trails)
}

func TestPipelineToStage(t *testing.T) {
	w := oneWorld(t)
	pipe := w.pipeline(patterns.PipelineConfig{}, append(stages("a"), patterns.PipelineHub("hub", stages("b", "c")...))...)
	client := w.recorder("client")
	require.Equal(t, "hello at c", w.answer(pipe, patterns.ToStage{Stage: "c", Message: "hello"}))
	pipe.TellFrom(patterns.ToStage{Stage: "a", Message: "you"}, client.ref)
	none := w.ask(pipe, patterns.ToStage{Stage: "hub", Message: "hello"})
	w.exec.Run()
	require.Len(t, client.got, 1)
	require.Equal(t, "you at a", client.got[0].Payload, "it does not go on")
	require.ErrorIs(t, none.err, actor.ErrNotFound)
}

func TestPipelineLimitAndStop(t *testing.T) {
	w := oneWorld(t)
	pipe := w.pipeline(patterns.PipelineConfig{Limit: 3}, stages("a", "b")...)
	hang := parcel{do: map[string]string{"b": "hang"}}
	client := w.recorder("client")
	one, two := w.ask(pipe, hang), w.ask(pipe, hang)
	pipe.TellFrom(hang, client.ref)
	w.exec.RunFor(time.Second)
	more := w.ask(pipe, hang)
	w.exec.RunFor(time.Second)
	require.ErrorIs(t, more.err, actor.ErrMailboxFull)
	require.Len(t, deadOf[parcel](w), 1)
	pipe.Stop()
	w.exec.RunFor(time.Second)
	require.ErrorIs(t, one.err, actor.ErrStopped)
	require.ErrorIs(t, two.err, actor.ErrStopped)
	dead := deadOf[parcel](w)
	require.Len(t, dead, 4)
	require.ErrorIs(t, dead[3].Reason, actor.ErrStopped)
}

// What a stage forgets, as in a restart, does not take up room for ever.
func TestPipelineForgottenMessagesEnd(t *testing.T) {
	w := oneWorld(t)
	pipe := w.pipeline(patterns.PipelineConfig{Limit: 1, Timeout: time.Minute}, stages("a", "b")...)
	client := w.recorder("client")
	pipe.TellFrom(parcel{do: map[string]string{"b": "hang"}}, client.ref)
	w.exec.RunFor(59 * time.Second)
	require.Empty(t, client.got)
	w.exec.RunFor(17 * time.Second)
	require.ErrorIs(t, client.got[0].Payload.(patterns.StageFailed), actor.ErrTimeout)
	require.Equal(t, "ab", w.answer(pipe, parcel{}).(parcel).trail)
}

func TestPipelineNames(t *testing.T) {
	for name, all := range map[string][]patterns.Stage{
		"a stage without props":  {{Name: "a"}},
		"a hub without members":  {patterns.PipelineHub("hub")},
		"two of a name":          stages("a", "b", "a"),
		"a name that is a place": append(stages("2"), patterns.Stage{Props: post()}),
		"a member's name":        append(stages("a"), patterns.PipelineHub("h", stages("a")...)),
	} {
		_, err := patterns.Pipeline(patterns.PipelineConfig{}, all...)
		require.ErrorIs(t, err, actor.ErrInvalid, name)
	}
	// A name that no actor can have is found out by the first message.
	w := oneWorld(t)
	pipe := w.pipeline(patterns.PipelineConfig{}, stages("a", "..")...)
	a := w.ask(pipe, parcel{})
	w.exec.Run()
	require.ErrorIs(t, a.err, actor.ErrInvalid)
	require.ErrorContains(t, a.err, "stage ..")
}

func TestPipelineRelayAsAStage(t *testing.T) {
	w := oneWorld(t)
	pipe := w.pipeline(patterns.PipelineConfig{}, stages("a")[0],
		patterns.Stage{Name: "slow", Props: patterns.ThrottlingRelay(patterns.RelayConfig{})},
		stages("b")[0],
		patterns.Stage{Name: "jobs", Props: patterns.ServiceManager(post(), patterns.ServiceConfig{})})
	client := w.recorder("client")
	for id := range 5 {
		pipe.TellFrom(parcel{id: id}, client.ref)
	}
	w.exec.RunFor(2500 * time.Millisecond)
	require.Len(t, client.got, 3, "at 0, 1 and 2 seconds")
	require.Equal(t, patterns.State{Waiting: 2, Capacity: 10_000, Passed: 3},
		w.answer(pipe, patterns.ToStage{Stage: "slow", Message: patterns.Status{}}))
	w.exec.Run()
	for id, p := range of[parcel](client) {
		require.Equal(t, id, p.id)
	}
	require.Len(t, client.got, 5)
	require.Empty(t, w.dead)
}

// Whatever stages do, and whichever stop: nothing goes to a stage twice or out
// of order, each message has an end, and where nothing stops it is the right one.
func TestPipelineUnderSeeds(t *testing.T) {
	mild := []string{"", "", "", "", "later", "keep", "fail", "hang"}
	dos := append(slices.Clone(mild), "panic", "stop")
	underSeeds(t, func(w *world) {
		all := append(append(stages("a", "b"), patterns.PipelineHub("h", stages("x", "y")...)), stages("c")...)
		pipe := w.pipeline(patterns.PipelineConfig{Limit: 20 + w.IntN(30), Timeout: 30 * time.Second}, all...)
		clients := []*recorder{w.recorder("p"), w.recorder("q")}
		calm := w.IntN(2) == 0 // nothing is stopped
		told := map[int]parcel{}
		from := map[int]*recorder{}
		next := 0
		for range 20 + w.IntN(10) {
			p := parcel{do: map[string]string{}}
			for _, s := range []string{"a", "b", "c", "x", "y"} {
				switch d := w.IntN(len(dos)); {
				case w.IntN(3) > 0:
				case !calm || d < len(mild):
					p.do[s] = dos[d]
				}
			}
			ask, client := w.IntN(2) == 0, clients[w.IntN(2)]
			w.later(3*time.Second, func() {
				next++
				p.id = next
				if ask {
					w.ask(pipe, p)
					return
				}
				told[p.id], from[p.id] = p, client
				pipe.TellFrom(p, client.ref)
			})
		}
		if !calm {
			for range w.IntN(4) {
				w.later(3*time.Second, func() {
					if c := pipe.Children(); len(c) > 0 {
						c[w.IntN(len(c))].Stop()
					}
				})
			}
			if w.IntN(3) == 0 {
				w.later(3*time.Second, pipe.Stop)
			}
		}
		w.exec.Run()
		for _, a := range w.asks {
			require.Equal(w.t, 1, a.ended)
			if a.err == nil {
				require.Contains(w.t, []string{"abxc", "abyc"}, a.v.(parcel).trail)
			}
		}
		ends := map[int]int{}
		for _, c := range clients {
			last := map[string]int{}
			for _, m := range c.got {
				require.Same(w.t, pipe, m.Sender)
				switch p := m.Payload.(type) {
				case parcel:
					require.Contains(w.t, []string{"abxc", "abyc"}, p.trail)
					require.Same(w.t, from[p.id], c)
					if !slices.Contains(slices.Collect(maps.Values(p.do)), "later") {
						require.Greater(w.t, p.id, last[p.trail], "order is kept")
						last[p.trail] = p.id
					}
					ends[p.id]++
				case patterns.StageFailed:
					require.Same(w.t, from[p.Message.(parcel).id], c)
					ends[p.Message.(parcel).id]++
				}
			}
		}
		dead := map[int]int{}
		for _, z := range deadOf[parcel](w) {
			dead[z.Message.Payload.(parcel).id]++
		}
		for id, p := range told {
			require.LessOrEqual(w.t, ends[id], 2, "one for each way")
			switch {
			case dead[id] == 0 && calm:
				require.Equal(w.t, p.ends(), ends[id], "parcel %d %v", id, p.do)
			case calm:
				require.Zero(w.t, ends[id], "it is refused whole")
			case p.ends() > 0:
				require.Positive(w.t, ends[id]+dead[id], "parcel %d %v is lost", id, p.do)
			}
		}
	})
}

// ends is how many messages the sender should get: one for each way that no
// stage keeps to itself.
func (p parcel) ends() (n int) {
	passes := func(stage string) bool { return p.do[stage] == "" || p.do[stage] == "later" }
	one := func(stage string) int {
		if p.do[stage] == "keep" {
			return 0
		}
		return 1
	}
	for _, s := range []string{"a", "b"} {
		if !passes(s) {
			return one(s)
		}
	}
	for _, s := range []string{"x", "y"} {
		if passes(s) {
			s = "c"
		}
		n += one(s)
	}
	return n
}
