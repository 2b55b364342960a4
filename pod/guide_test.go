package pod_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/pod"
)

// docs/entities.md quotes what stands here; the last test compares them.

// Press is the state of a press.
type Press struct {
	Hall    string  `json:"hall"`
	Celsius float64 `json:"celsius"`
	Strokes int     `json:"strokes"`
	Blocked bool    `json:"blocked"`
}

type Measured struct {
	Celsius float64 `json:"celsius"`
}

type Stroke struct {
	Times int `json:"times"`
}

type (
	Heat    struct{}
	Unlock  struct{}
	Checked struct {
		Safe bool `json:"safe"`
	}
	Cooled struct{}
)

var Presses = entity.Type[Press]{
	Name: "presses",
	Init: func(_ context.Context, name string) (Press, error) {
		hall, _, _ := strings.Cut(name, "-")
		return Press{Hall: hall, Celsius: 20}, nil
	},
	Create: entity.Creation{By: []string{"measured"}, Names: `(north|south)-[0-9]+`},
	Index:  []string{"state.hall"},
	Handlers: entity.Handlers[Press]{
		"measured": entity.On(onMeasured),
		"stroke":   entity.Reply(onStroke),
		"heat":     entity.Query(onHeat),
		"unlock":   entity.On(onUnlock),
		"checked":  entity.On(onChecked),
		"cooled":   entity.On(onCooled),
	},
}

func onMeasured(c *entity.Context, p *Press, m Measured) error {
	p.Celsius = m.Celsius
	c.SendOnce("halls", p.Hall, Warmth{Press: c.Name(), Celsius: m.Celsius})
	if m.Celsius > 80 && !p.Blocked {
		p.Blocked = true
		c.Remind("cooled", entity.Reminder{At: c.Now().Add(time.Hour), Message: Cooled{}})
	}
	return nil
}

func onStroke(_ *entity.Context, p *Press, m Stroke) (int, error) {
	if p.Blocked {
		return 0, entity.Rejectf("it is at %v degrees", p.Celsius)
	}
	p.Strokes += m.Times
	return p.Strokes, nil
}

func onHeat(_ *entity.Context, p *Press, _ Heat) (kelvin float64, err error) {
	return p.Celsius + 273.15, nil
}

func onUnlock(c *entity.Context, p *Press, _ Unlock) error {
	at := p.Celsius
	c.PipeTo(func(ctx context.Context) (any, error) {
		safe, err := askInspector(ctx, at) // may take its time
		return Checked{Safe: safe}, err
	})
	return nil
}

func onChecked(_ *entity.Context, p *Press, m Checked) error {
	p.Blocked = p.Blocked && !m.Safe
	return nil
}

func onCooled(_ *entity.Context, p *Press, _ Cooled) error {
	p.Celsius, p.Blocked = 20, false
	return nil
}

// Hall is the state of a hall: how warm each press was last.
type Hall struct {
	Presses map[string]float64 `json:"presses"`
}

// Warmth is what a press tells its hall.
type Warmth struct {
	Press   string  `json:"press"`
	Celsius float64 `json:"celsius"`
}

var Halls = entity.Type[Hall]{
	Name: "halls",
	Handlers: entity.Handlers[Hall]{
		"warmth": entity.On(func(_ *entity.Context, h *Hall, m Warmth) error {
			if h.Presses == nil {
				h.Presses = map[string]float64{}
			}
			h.Presses[m.Press] = m.Celsius
			return nil
		}),
	},
}

func askInspector(_ context.Context, celsius float64) (safe bool, err error) {
	return celsius < 100, nil
}

// factory opens both pods in memory.
func factory(cfg actor.Config) (sys *actor.System, pods *pod.Pods, presses *pod.Handle[Press], halls *pod.Handle[Hall]) {
	sys = actor.NewSystem("factory", cfg)
	pods, err := pod.Open(sys, memory.Open(memory.Config{}), pod.Config{})
	if err == nil {
		presses, err = pod.Start(pods, Presses)
	}
	if err == nil {
		halls, err = pod.Start(pods, Halls)
	}
	if err != nil {
		panic(err)
	}
	return sys, pods, presses, halls
}

func closeFactory(sys *actor.System, pods *pod.Pods) {
	_ = pods.Close(context.Background())
	_ = sys.Stop(context.Background())
}

func Example_send() {
	ctx := context.Background()
	sys, pods, presses, _ := factory(actor.Config{})
	defer closeFactory(sys, pods)

	press := presses.Ref("north-7")
	ack, err := entity.Ask[entity.Ack](ctx, press, Measured{Celsius: 85}) // creates it
	fmt.Println(ack.Revision, ack.Created, err)

	_, err = entity.Ask[int](ctx, press, Stroke{Times: 1})
	var no *entity.RejectedError
	fmt.Println(errors.As(err, &no), err)

	kelvin, err := entity.Ask[float64](ctx, press, Heat{})
	fmt.Println(kelvin, err)

	_, err = entity.Ask[int](ctx, presses.Ref("north-8"), Stroke{Times: 1}) // no stroke creates
	fmt.Println(errors.Is(err, entity.ErrNotFound), err)

	// A message with an id is handled once, however often it is sent.
	for range 2 {
		ack, err = entity.Ask[entity.Ack](ctx, press, entity.WithID("order-4711", Measured{Celsius: 86}))
		fmt.Println(ack.Revision, err)
	}

	m, err := pods.Wrap("presses", Measured{Celsius: 87})
	if err != nil {
		panic(err)
	}
	m.If = entity.Condition{Match: []entity.ETag{{Life: ack.Life, Revision: 1}}}
	_, err = entity.Ask[entity.Ack](ctx, press, m)
	fmt.Println(errors.Is(err, entity.ErrStale))
	// Output:
	// 1 true <nil>
	// true rejected: it is at 85 degrees
	// 358.15 <nil>
	// true no such entity: presses/north-8, and "stroke" does not create it
	// 2 <nil>
	// 2 <nil>
	// true
}

func Example_read() {
	ctx := context.Background()
	sys, pods, presses, _ := factory(actor.Config{})
	defer closeFactory(sys, pods)
	for name, celsius := range map[string]float64{"north-1": 31, "north-2": 58.5, "south-1": 44} {
		if _, err := presses.Ask(ctx, name, Measured{Celsius: celsius}); err != nil {
			panic(err)
		}
	}

	view, err := presses.Get(ctx, "north-2")
	fmt.Println(view.Name, view.State.Celsius, view.Revision, err)

	// Queries find entities by their states.
	warm, err := filter.Compile(`state.celsius > 30.0 && state.hall == "north"`)
	if err != nil {
		panic(err)
	}
	celsius, err := filter.ParsePath("state.celsius")
	if err != nil {
		panic(err)
	}
	query := pod.Query{Filter: warm, Sort: []pod.Order{{Path: celsius, Descending: true}}, Limit: 1, Count: true}
	for more := true; more; {
		page, err := presses.Query(ctx, query)
		if err != nil {
			panic(err)
		}
		for _, found := range page.Items {
			view, err := presses.Typed(found.View)
			fmt.Println(view.Name, view.State.Celsius, "of", page.Count, err)
		}
		query.Cursor = page.Next
		more = page.Next != ""
	}

	// Groups put together what a query matches.
	hall, err := filter.ParsePath("state.hall")
	if err != nil {
		panic(err)
	}
	groups, err := presses.Query(ctx, pod.Query{Group: &pod.Group{
		By:     []filter.Path{hall},
		Fields: []pod.Aggregate{{Of: pod.MaxOf, Path: celsius}},
	}})
	if err != nil {
		panic(err)
	}
	for _, g := range groups.Groups {
		hall, _ := g.By[0].Text()
		warmest, _ := g.Values[0].Float()
		fmt.Println(hall, g.Count, warmest)
	}
	// Output:
	// north-2 58.5 1 <nil>
	// north-2 58.5 of 2 <nil>
	// north-1 31 of 2 <nil>
	// north 2 58.5
	// south 1 44
}

func Example_watch() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sys, pods, presses, _ := factory(actor.Config{})
	defer closeFactory(sys, pods)

	w, err := pods.Watch(ctx, pod.WatchRequest{Pods: []string{"presses"}})
	if err != nil {
		panic(err)
	}
	defer w.Close()
	for _, celsius := range []float64{31, 44} {
		if err := presses.Tell(ctx, "south-1", Measured{Celsius: celsius}); err != nil {
			panic(err)
		}
	}
	for range 2 {
		e, err := w.Next(ctx)
		if err != nil {
			panic(err)
		}
		switch e.Kind {
		case pod.EventChanged:
			var p Press
			err = json.Unmarshal(e.State, &p)
			fmt.Println(e.Name, e.Revision, e.Type, p.Celsius, err)
		case pod.EventDeleted, pod.EventLeft:
			fmt.Println(e.Name, "is gone")
		case pod.EventGap:
			fmt.Println("read everything anew:", e.Reason)
		}
	}

	// What was, by revision; AtTime takes a time.
	before, err := presses.At(ctx, "south-1", 1)
	if err != nil {
		panic(err)
	}
	first, err := presses.Typed(before)
	fmt.Println(first.State.Celsius, err)
	history, err := presses.History(ctx, "south-1", pod.HistoryOptions{})
	fmt.Println(len(history.Revisions), err)
	// Output:
	// south-1 1 measured 31 <nil>
	// south-1 2 measured 44 <nil>
	// 31 <nil>
	// 2 <nil>
}

func Example_virtualTime() {
	ctx := context.Background()
	clock := actortest.NewSeeded(1)
	defer clock.Close()
	_, _, presses, halls := factory(actor.Config{Executor: clock}) // opens a system, a store and the pods

	if _, err := presses.Ask(ctx, "north-7", Measured{Celsius: 85}); err != nil {
		panic(err)
	}
	clock.RunFor(59 * time.Minute) // takes no time
	_, err := entity.Ask[int](ctx, presses.Ref("north-7"), Stroke{Times: 1})
	fmt.Println(err)
	clock.RunFor(time.Minute) // now the reminder comes
	n, err := entity.Ask[int](ctx, presses.Ref("north-7"), Stroke{Times: 1})
	fmt.Println(n, err)

	for _, m := range []any{Measured{Celsius: 90}, Unlock{}} {
		if _, err := presses.Ask(ctx, "north-7", m); err != nil {
			panic(err)
		}
	}
	clock.RunFor(time.Second) // the inspector answers
	n, err = entity.Ask[int](ctx, presses.Ref("north-7"), Stroke{Times: 1})
	fmt.Println(n, err)

	hall, err := halls.Get(ctx, "north")
	fmt.Println(hall.State.Presses, err)
	// Output:
	// rejected: it is at 85 degrees
	// 1 <nil>
	// 2 <nil>
	// map[north-7:90] <nil>
}

// What the page shows of Go is what stands above, and so runs.
func TestTheGuideShowsTheExamples(t *testing.T) {
	page, err := os.ReadFile("../docs/entities.md")
	require.NoError(t, err)
	examples, err := os.ReadFile("guide_test.go")
	require.NoError(t, err)
	indent := regexp.MustCompile(`(?m)^\t+`)
	flat := indent.ReplaceAllString(string(examples), "")
	snippets := regexp.MustCompile("(?s)```go fragment\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(snippets), 8)
	for _, s := range snippets {
		if !strings.Contains(flat, indent.ReplaceAllString(s[1], "")) {
			t.Errorf("not in an example:\n%s", s[1])
		}
	}
}

// A view is decoded by the pod that it is of, and by nobody else.
func TestTypedRefusesOtherPodsViews(t *testing.T) {
	sys, pods, presses, halls := factory(actor.Config{})
	defer closeFactory(sys, pods)
	ctx := context.Background()
	_, err := halls.Ask(ctx, "north", Warmth{Press: "north-7", Celsius: 31})
	require.NoError(t, err)
	view, err := halls.Pod.Get(ctx, "north")
	require.NoError(t, err)
	hall, err := halls.Typed(view)
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"north-7": 31}, hall.State.Presses)
	_, err = presses.Typed(view)
	require.EqualError(t, err, "halls/north: the view is not of the pod presses")
	_, err = halls.Typed(pod.View{Pod: "halls", Name: "north"})
	require.EqualError(t, err, "halls/north: the view was read before the pod had its type; read it again")
}

// A pod is found by its name and the type of its state, and by no other.
func TestFind(t *testing.T) {
	sys, pods, _, _ := factory(actor.Config{})
	defer closeFactory(sys, pods)
	ctx := context.Background()
	halls, err := pod.Find[Hall](pods, "halls")
	require.NoError(t, err)
	_, err = entity.Ask[entity.Ack](ctx, halls.Ref("north"), Warmth{Press: "north-7", Celsius: 31})
	require.NoError(t, err)
	_, err = pod.Find[Press](pods, "halls")
	require.ErrorIs(t, err, entity.ErrDefinition)
	require.ErrorContains(t, err, "the state of pod halls is pod_test.Hall, not pod_test.Press")
	_, err = pod.Find[Hall](pods, "none")
	require.ErrorIs(t, err, pod.ErrNoPod)
}

// Who asks for what a message is not answered with is refused before it is handled:
// afterwards he might send it again.
func TestAskingForAnotherAnswerSendsNothing(t *testing.T) {
	sys, pods, presses, _ := factory(actor.Config{})
	defer closeFactory(sys, pods)
	ctx := context.Background()
	_, err := entity.Ask[int](ctx, presses.Ref("north-7"), Measured{Celsius: 31})
	require.EqualError(t, err, `ask presses/north-7: "measured" is answered with entity.Ack, not with int; nothing was sent`)
	_, err = entity.Ask[string](ctx, presses.Ref("north-7"), entity.WithID("1", Measured{Celsius: 31}))
	require.ErrorContains(t, err, "nothing was sent")
	_, err = presses.Get(ctx, "north-7")
	require.ErrorIs(t, err, entity.ErrNotFound)
	_, err = entity.Ask[any](ctx, presses.Ref("north-7"), Measured{Celsius: 31})
	require.NoError(t, err)
	_, err = entity.Ask[fmt.Stringer](ctx, presses.Ref("north-7"), Stroke{Times: 1})
	require.ErrorContains(t, err, "nothing was sent")
	_, err = entity.Ask[string](ctx, presses.Ref("north-7"), "no message")
	require.ErrorIs(t, err, entity.ErrUnknownMessage)
	_, err = entity.Ask[entity.Ack](ctx, presses.Ref("north-7"), entity.Delete(entity.Condition{}))
	require.NoError(t, err)
}

// A watch takes a filter.
func TestAWatchWithAFilter(t *testing.T) {
	sys, pods, presses, _ := factory(actor.Config{})
	defer closeFactory(sys, pods)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	warm, err := filter.Compile(`state.celsius > 30.0`)
	require.NoError(t, err)
	w, err := pods.Watch(ctx, pod.WatchRequest{Pods: []string{"presses"}, Match: pod.Matching(warm)})
	require.NoError(t, err)
	defer w.Close()
	for _, celsius := range []float64{21, 31, 22} {
		_, err := presses.Ask(ctx, "south-1", Measured{Celsius: celsius})
		require.NoError(t, err)
	}
	for _, want := range []pod.EventKind{pod.EventChanged, pod.EventLeft} {
		e, err := w.Next(ctx)
		require.NoError(t, err)
		require.Equal(t, want, e.Kind)
	}
}

// The stack of a handler's panic is in the log, whoever sent the message.
func TestAPanicIsLoggedWithItsStack(t *testing.T) {
	var out bytes.Buffer
	clock := actortest.NewSeeded(1)
	defer clock.Close()
	sys := actor.NewSystem("factory", actor.Config{Executor: clock, Logger: slog.New(slog.NewTextHandler(&out, nil))})
	pods, err := pod.Open(sys, memory.Open(memory.Config{}), pod.Config{})
	require.NoError(t, err)
	h, err := pod.Start(pods, entity.Type[Hall]{Name: "bombs", Handlers: entity.Handlers[Hall]{
		"heat": entity.On(func(*entity.Context, *Hall, Heat) error { panic("too hot") }),
		"unlock": entity.On(func(c *entity.Context, _ *Hall, _ Unlock) error {
			c.PipeTo(func(context.Context) (any, error) { panic("no answer") })
			return nil
		}),
		"failed": entity.On(func(*entity.Context, *Hall, entity.PipeFailed) error { return nil }),
	}})
	require.NoError(t, err)
	_, err = h.Ask(context.Background(), "b", Heat{})
	var failed *entity.HandlerError
	require.ErrorAs(t, err, &failed)
	require.Contains(t, out.String(), "a handler panicked")
	require.Contains(t, out.String(), "entity=bombs/b message=heat panic=\"too hot\"")
	require.Contains(t, out.String(), "guide_test.go:")
	require.Equal(t, 1, strings.Count(out.String(), "a handler panicked"))

	out.Reset()
	_, err = h.Ask(context.Background(), "b", Unlock{})
	require.NoError(t, err)
	clock.RunFor(time.Second)
	require.Contains(t, out.String(), "entity=bombs/b message=PipeTo panic=\"no answer\"")
	require.Contains(t, out.String(), "guide_test.go:")
}

// Who stops the system before the pods hears that they stop.
func TestASystemThatStopsBeforeItsPods(t *testing.T) {
	sys, _, presses, _ := factory(actor.Config{})
	require.NoError(t, sys.Stop(context.Background()))
	_, err := presses.Ask(context.Background(), "north-7", Measured{Celsius: 31})
	require.ErrorIs(t, err, pod.ErrStopping)
}
