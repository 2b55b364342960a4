package patterns_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/patterns"
)

func ExampleCompletionService() {
	ctx := context.Background()
	sys := actor.NewSystem("example", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }()
	doubler, _ := sys.Spawn("doubler", actor.PropsFunc(func(c *actor.Context, msg any) error {
		c.Respond(2 * msg.(int))
		return nil
	}))

	futures := patterns.NewCompletionService(sys, patterns.Config{Limit: 100, Waiting: 1000})
	defer futures.Close()
	f, _ := futures.Start(ctx, doubler, 21, time.Minute)
	v, err := f.Wait(ctx)
	fmt.Println(v, err)
	// Output: 42 <nil>
}

// Ten reports are made at a time, each by an actor of its own; whoever asks sees
// only the manager.
func ExampleServiceManager() {
	ctx := context.Background()
	sys := actor.NewSystem("example", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }()

	reporter := actor.PropsFunc(func(c *actor.Context, msg any) error {
		building := msg.(string)
		if building == "" {
			return errors.New("which building?")
		}
		c.Respond("report of " + building)
		return nil
	})
	reports, _ := sys.Spawn("reports", patterns.ServiceManager(reporter, patterns.ServiceConfig{Slots: 10}))
	fmt.Println(reports.Ask(ctx, "tower"))
	fmt.Println(reports.Ask(ctx, ""))
	state, _ := actor.Ask[patterns.State](ctx, reports, patterns.Status{})
	fmt.Println(state.Passed, state.Waiting, state.Capacity)
	// Output:
	// report of tower <nil>
	// <nil> which building?
	// 2 0 10000
}

func ExamplePipeline() {
	ctx := context.Background()
	sys := actor.NewSystem("example", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }()

	stage := func(f func(string) string) actor.Props {
		return actor.PropsFunc(func(c *actor.Context, msg any) error {
			c.Respond(f(msg.(string)))
			return nil
		})
	}
	props, err := patterns.Pipeline(patterns.PipelineConfig{},
		patterns.Stage{Name: "trim", Props: stage(strings.TrimSpace)},
		patterns.Stage{Name: "title", Props: stage(strings.ToUpper)},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	headlines, _ := sys.Spawn("headlines", props)
	fmt.Println(headlines.Ask(ctx, "  markets up "))
	_, err = headlines.Ask(ctx, 42)
	var failed patterns.StageFailed
	fmt.Println(errors.As(err, &failed), failed.Stage, failed.Message)
	// Output:
	// MARKETS UP <nil>
	// true trim 42
}

// The hub has every word looked at twice, and both findings go on.
func ExamplePipelineHub() {
	ctx := context.Background()
	sys := actor.NewSystem("example", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }()
	found := make(chan string, 2)

	looker := func(what func(string) string) actor.Props {
		return actor.PropsFunc(func(c *actor.Context, msg any) error {
			c.Respond(what(msg.(string)))
			return nil
		})
	}
	sink := actor.PropsFunc(func(_ *actor.Context, msg any) error {
		found <- msg.(string)
		return nil
	})
	props, _ := patterns.Pipeline(patterns.PipelineConfig{},
		patterns.PipelineHub("look",
			patterns.Stage{Name: "length", Props: looker(func(s string) string { return fmt.Sprint(len(s), " letters") })},
			patterns.Stage{Name: "first", Props: looker(func(s string) string { return "begins with " + s[:1] })},
		),
		patterns.Stage{Name: "sink", Props: sink},
	)
	words, _ := sys.Spawn("words", props)
	words.Tell("floor")

	both := []string{<-found, <-found}
	slices.Sort(both)
	fmt.Println(strings.Join(both, ", "))
	// Output: 5 letters, begins with f
}

// note knows who is to get what becomes of it.
type note struct {
	patterns.Returnable
	Text string
}

func ExampleReturnable() {
	ctx := context.Background()
	sys := actor.NewSystem("example", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }()
	read := make(chan string)
	desk, _ := sys.Spawn("desk", actor.PropsFunc(func(_ *actor.Context, msg any) error {
		read <- msg.(note).Text
		return nil
	}))

	shout := actor.PropsFunc(func(c *actor.Context, msg any) error {
		n := msg.(note)
		n.Text += "!"
		c.Respond(n)
		return nil
	})
	props, _ := patterns.Pipeline(patterns.PipelineConfig{}, patterns.Stage{Props: shout}, patterns.Stage{Props: shout})
	pipe, _ := sys.Spawn("pipe", props)
	pipe.Tell(note{patterns.Returnable{Origin: desk}, "hello"})
	fmt.Println(<-read)
	// Output: hello!!
}

func ExamplePipelineBuilder() {
	ctx := context.Background()
	sys := actor.NewSystem("example", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }()

	add := func(n int) actor.Props {
		return actor.PropsFunc(func(c *actor.Context, msg any) error {
			c.Respond(msg.(int) + n)
			return nil
		})
	}
	builder, _ := sys.Spawn("builder", patterns.PipelineBuilder(patterns.PipelineConfig{}))
	builder.Tell(patterns.Stage{Props: add(1)})
	builder.Tell(patterns.Stage{Props: add(10)})
	props, _ := actor.Ask[actor.Props](ctx, builder, patterns.Build{})
	sum, _ := sys.Spawn("sum", props)
	fmt.Println(sum.Ask(ctx, 31))
	// Output: 42 <nil>
}

// Measured is published.
type Measured struct{ Celsius float64 }

func ExamplePubSub() {
	ctx := context.Background()
	sys := actor.NewSystem("example", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }()
	seen := make(chan Measured)

	bus, _ := sys.Spawn("bus", patterns.PubSub(patterns.PubSubConfig{}))
	display, _ := sys.Spawn("display", actor.PropsFunc(func(_ *actor.Context, msg any) error {
		seen <- msg.(Measured)
		return nil
	}))
	// In a handler: ctx.Tell(bus, patterns.SubscribeTo[Measured]())
	bus.TellFrom(patterns.SubscribeTo[Measured](), display)
	bus.Tell("not for the display")
	bus.Tell(Measured{21.5})
	fmt.Println(<-seen)
	// Output: {21.5}
}

// An actor of yours can stand between, here to count what passes.
func ExampleProxy() {
	ctx := context.Background()
	sys := actor.NewSystem("example", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }()

	target, _ := sys.Spawn("target", actor.PropsFunc(func(c *actor.Context, msg any) error {
		c.Respond(fmt.Sprint("got ", msg))
		return nil
	}))
	passed := 0
	counter, _ := sys.Spawn("counter", actor.PropsFunc(func(c *actor.Context, msg any) error {
		switch m := msg.(type) {
		case patterns.Proxy:
			passed++
			return m.Pass(c)
		default:
			c.Respond(passed)
		}
		return nil
	}))
	fmt.Println(counter.Ask(ctx, patterns.Proxy{To: target, Message: "this"}))
	fmt.Println(counter.Ask(ctx, "how many?"))
	// Output:
	// got this <nil>
	// 1 <nil>
}

func ExampleThrottlingRelay() {
	ctx := context.Background()
	sys := actor.NewSystem("example", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }()

	service, _ := sys.Spawn("service", actor.PropsFunc(func(c *actor.Context, msg any) error {
		c.Respond(msg)
		return nil
	}))
	relay, _ := sys.Spawn("relay", patterns.ThrottlingRelay(patterns.RelayConfig{
		Rate:  patterns.Rate{Every: 20 * time.Millisecond, Burst: 2},
		Queue: 100,
		To:    service,
	}))
	begun := sys.Now()
	for n := range 5 {
		_, _ = relay.Ask(ctx, n) // the service answers
	}
	_, err := relay.Ask(ctx, patterns.Proxy{To: service, Message: "to whoever it names"})
	fmt.Println(sys.Now().Sub(begun) >= 40*time.Millisecond, err)
	// Output: true <nil>
}

// Each host is asked once a second at most, and none waits for another.
func ExampleKeyedThrottlingRelay() {
	ctx := context.Background()
	sys := actor.NewSystem("example", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }()

	fetcher, _ := sys.Spawn("fetcher", actor.PropsFunc(func(c *actor.Context, msg any) error {
		c.Respond("fetched " + msg.(string))
		return nil
	}))
	relay, _ := sys.Spawn("polite", patterns.KeyedThrottlingRelay(patterns.KeyedRelayConfig{
		Rate:  patterns.Rate{Every: time.Second},
		Rates: map[string]patterns.Rate{"fast.example": {Every: time.Millisecond}},
		To:    fetcher,
	}))
	for _, host := range []string{"slow.example", "fast.example", "fast.example", "other.example"} {
		fmt.Println(relay.Ask(ctx, patterns.Proxy{Key: host, Message: host}))
	}
	// Output:
	// fetched slow.example <nil>
	// fetched fast.example <nil>
	// fetched fast.example <nil>
	// fetched other.example <nil>
}

func ExampleReaper() {
	ctx := context.Background()
	sys := actor.NewSystem("example", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }()

	var rooms []actor.Target
	for _, people := range []int{3, 0, 4} {
		room, _ := sys.Spawn("", actor.PropsFunc(func(c *actor.Context, _ any) error {
			c.Respond(people)
			return nil
		}))
		rooms = append(rooms, room)
	}
	reaper, _ := sys.Spawn("reaper", patterns.Reaper(patterns.ReaperConfig{}))
	r, _ := actor.Ask[patterns.Reaped](ctx, reaper, patterns.Reap{
		Message: "how many?",
		Targets: rooms,
		Timeout: time.Minute,
	})
	fmt.Println(patterns.ValuesOf[int](r), r.Complete)
	// Output: [3 0 4] true
}

func ExampleReapTransform() {
	ctx := context.Background()
	sys := actor.NewSystem("example", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }()
	floor, _ := sys.Spawn("floor", patterns.Null())
	for _, people := range []int{3, 0, 4} {
		_, _ = floor.Spawn("", actor.PropsFunc(func(c *actor.Context, _ any) error {
			c.Respond(people)
			return nil
		}))
	}

	// A child of the floor that answers for all others.
	total, _ := floor.Spawn("total", patterns.ReapTransform(patterns.ReapTransformConfig{
		Transform: func(_ any, r patterns.Reaped) (any, error) {
			if !r.Complete {
				return nil, errors.New("not all rooms have answered")
			}
			sum := 0
			for _, n := range patterns.ValuesOf[int](r) {
				sum += n
			}
			return sum, nil
		},
	}))
	fmt.Println(total.Ask(ctx, "how many?"))
	// Output: 7 <nil>
}

// clerk asks before it deletes.
type clerk struct{ said chan bool }

func (k clerk) Receive(ctx *actor.Context, msg any) error {
	switch m := msg.(type) {
	case actor.DelegationEnded:
		k.said <- m.Payload.(patterns.YesNo).Yes
	case string: // "delete everything"
		child, err := ctx.Spawn("", patterns.DelegatedYesNo(patterns.YesNoConfig{Again: "yes or no?"}))
		if err != nil {
			return err
		}
		ctx.DelegateTo(child)
		ctx.Respond("are you sure?")
	}
	return nil
}

func ExampleDelegatedYesNo() {
	ctx := context.Background()
	sys := actor.NewSystem("example", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }()

	said := make(chan bool, 1)
	desk, _ := sys.Spawn("desk", actor.PropsOf(func() actor.Actor { return clerk{said} }))
	fmt.Println(desk.Ask(ctx, "delete everything"))
	fmt.Println(desk.Ask(ctx, "well"))
	fmt.Println(desk.Ask(ctx, "No"))
	fmt.Println(<-said)
	// Output:
	// are you sure? <nil>
	// yes or no? <nil>
	// {false} <nil>
	// false
}

func ExampleLog() {
	ctx := context.Background()
	noTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: noTime}))
	sys := actor.NewSystem("example", actor.Config{Logger: logger})
	defer func() { _ = sys.Stop(ctx) }()

	tap, _ := sys.Spawn("tap", patterns.Log(slog.LevelInfo))
	_, _ = tap.Ask(ctx, Measured{21.5})
	// Output: level=INFO msg=message type=patterns_test.Measured message={Celsius:21.5} sender="" actor=/user/tap
}

func ExampleNull() {
	ctx := context.Background()
	sys := actor.NewSystem("example", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }()

	null, _ := sys.Spawn("null", patterns.Null())
	null.Tell("anything")
	_, err := null.Ask(ctx, "anybody?")
	fmt.Println(errors.Is(err, actor.ErrNoReply), sys.DeadLetters().Count())
	// Output: true 0
}

// What holds a queue can be asked how it stands, and be paused.
func ExampleStatus() {
	ctx := context.Background()
	sys := actor.NewSystem("example", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }()

	jobs, _ := sys.Spawn("jobs", patterns.ServiceManager(patterns.Null(), patterns.ServiceConfig{Slots: 1, Queue: 2}))
	_, _ = jobs.Ask(ctx, patterns.Pause{})
	for n := range 3 {
		jobs.Tell(n)
	}
	s, _ := actor.Ask[patterns.State](ctx, jobs, patterns.Status{})
	fmt.Printf("%+v\n", s)
	s, _ = actor.Ask[patterns.State](ctx, jobs, patterns.Continue{})
	fmt.Println(s.Paused)
	// Output:
	// {Paused:true Waiting:2 Capacity:2 Active:0 Passed:0 Refused:1}
	// false
}
