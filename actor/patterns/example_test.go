package patterns_test

import (
	"context"
	"fmt"
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

	futures := patterns.NewCompletionService(sys, patterns.Config{Limit: 100})
	defer futures.Close()
	f, _ := futures.Start(ctx, doubler, 21, time.Second)
	v, err := f.Wait(ctx)
	fmt.Println(v, err)
	// Output: 42 <nil>
}
