package actortest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
)

// A day passes in no time, and the same way each time.
func ExampleSeeded() {
	exec := actortest.NewSeeded(42)
	defer exec.Close()
	sys := actor.NewSystem("test", actor.Config{Executor: exec})
	hours := 0
	clock, _ := sys.Spawn("clock", actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		switch msg {
		case "start":
			ctx.ScheduleEvery(time.Hour, ctx.Self(), "hour")
		case "hour":
			hours++
		}
		return nil
	}))
	_ = clock.Tell("start")
	exec.RunFor(24 * time.Hour)
	fmt.Println(hours, sys.Stop(context.Background()))
	// Output: 24 <nil>
}
