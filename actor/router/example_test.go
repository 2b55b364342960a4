package router_test

import (
	"context"
	"fmt"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/router"
)

// Three workers share the work; the asker does not see them.
func Example() {
	ctx := context.Background()
	sys := actor.NewSystem("campus", actor.Config{})
	squares, err := router.Spawn(sys, "squares", router.Config{
		Workers: 3,
		Worker: actor.PropsFunc(func(ctx *actor.Context, msg any) error {
			n := msg.(int)
			ctx.Respond(n * n)
			return nil
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	sum := 0
	for n := range 10 {
		square, err := actor.Ask[int](ctx, squares, n)
		if err != nil {
			fmt.Println(err)
			return
		}
		sum += square
	}
	fmt.Println(sum, len(squares.Children()))
	fmt.Println(sys.Stop(ctx))
	// Output:
	// 285 3
	// <nil>
}
