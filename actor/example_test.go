package actor_test

import (
	"context"
	"fmt"

	"github.com/twinsrv/twinsrv/actor"
)

type Measured struct{ Celsius float64 }

type HowWarm struct{}

// Room is an actor. Its fields need no lock.
type Room struct{ celsius float64 }

func (r *Room) Receive(ctx *actor.Context, msg any) error {
	switch m := msg.(type) {
	case Measured:
		r.celsius = m.Celsius
	case HowWarm:
		ctx.Respond(r.celsius)
	}
	return nil
}

func Example() {
	ctx := context.Background()
	sys := actor.NewSystem("campus", actor.Config{})
	room, err := sys.Spawn("tower-3-21", actor.PropsOf(func() actor.Actor { return &Room{} }))
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = room.Tell(Measured{21.5}) // fails only with a bounded mailbox
	celsius, err := actor.Ask[float64](ctx, room, HowWarm{})
	fmt.Println(room, celsius, err)
	fmt.Println(sys.Stop(ctx))
	// Output:
	// /user/tower-3-21 21.5 <nil>
	// <nil>
}

func ExampleContext_PipeTo() {
	ctx := context.Background()
	sys := actor.NewSystem("campus", actor.Config{})
	room, _ := sys.Spawn("room", actor.PropsOf(func() actor.Actor { return &Room{celsius: 20} }))
	floor, _ := sys.Spawn("floor", actor.PropsFunc(func(c *actor.Context, msg any) error {
		switch m := msg.(type) {
		case string:
			reply := c.Defer() // answered later, below
			c.PipeTo(c.Self(), func(ctx context.Context) (any, error) {
				v, err := actor.Ask[float64](ctx, room, HowWarm{})
				if err != nil {
					reply.Fail(err)
					return nil, err
				}
				reply.Complete(fmt.Sprintf("%s: %v degrees", m, v))
				return v, nil
			})
		case float64:
			// The result is also a message here, where fields may be changed.
		}
		return nil
	}))
	fmt.Println(floor.Ask(ctx, "how warm is it?"))
	_ = sys.Stop(ctx)
	// Output:
	// how warm is it?: 20 degrees <nil>
}

func ExampleContext_Select() {
	ctx := context.Background()
	sys := actor.NewSystem("campus", actor.Config{})
	floor, _ := sys.Spawn("floor", actor.PropsFunc(func(c *actor.Context, msg any) error {
		return c.Forward(c.Select(msg.(string)))
	}))
	for _, name := range []string{"a", "b"} {
		_, _ = floor.Spawn(name, actor.PropsFunc(func(c *actor.Context, msg any) error {
			c.Respond(c.Self().Path())
			return nil
		}))
	}
	fmt.Println(floor.Ask(ctx, "a"))
	fmt.Println(floor.Ask(ctx, "nobody"))
	fmt.Println(sys.Select("floor/*").Refs())
	_ = sys.Stop(ctx)
	// Output:
	// /user/floor/a <nil>
	// <nil> /user/floor/nobody: no such actor
	// [/user/floor/a /user/floor/b]
}
