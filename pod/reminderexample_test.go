package pod_test

import (
	"context"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/actor/actortest"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/pod"
)

type loan struct {
	Book     string   `json:"book"`
	Reminded []string `json:"reminded"`
}

type (
	lend struct {
		Book string
	}
	overdue  struct{}
	returned struct{}
)

var loans = entity.Type[loan]{
	Name: "loans",
	Handlers: entity.Handlers[loan]{
		"lend": entity.On(func(c *entity.Context, l *loan, m lend) error {
			l.Book = m.Book
			c.Remind("overdue", entity.Reminder{At: c.Now().Add(14 * 24 * time.Hour), Every: 7 * 24 * time.Hour, Message: overdue{}})
			return nil
		}),
		"overdue": entity.On(func(c *entity.Context, l *loan, _ overdue) error {
			if r, reminded := c.Reminder(); reminded {
				l.Reminded = append(l.Reminded, r.Due.Format(time.DateOnly))
			}
			return nil
		}),
		"returned": entity.On(func(c *entity.Context, l *loan, _ returned) error {
			c.Forget("overdue")
			return nil
		}),
	},
}

// A reminder is durable with the change that sets it, and comes when it is due
// though neither the entity nor the process was there all the time.
func Example_reminder() {
	ctx, store := context.Background(), memory.Open(memory.Config{})
	open := func(after time.Duration) (*actortest.Seeded, *pod.Handle[loan]) {
		clock := actortest.NewSeeded(1) // starts at the beginning of 2030
		sys := actor.NewSystem("library", actor.Config{Executor: clock})
		pods, err := pod.Open(sys, store, pod.Config{})
		if err != nil {
			panic(err)
		}
		clock.RunFor(after)
		h, err := pod.Start(pods, loans)
		if err != nil {
			panic(err)
		}
		return clock, h
	}
	day := 24 * time.Hour

	clock, h := open(0)
	if _, err := h.Ask(ctx, "ann-7", lend{Book: "Emma"}); err != nil {
		panic(err)
	}
	clock.RunFor(16 * day)
	clock.Close() // and nothing runs for a fortnight
	clock, h = open(30 * day)
	clock.RunFor(6 * day)
	if _, err := h.Ask(ctx, "ann-7", returned{}); err != nil {
		panic(err)
	}
	clock.RunFor(60 * day)
	v, err := h.Get(ctx, "ann-7")
	fmt.Println(v.State.Reminded, err)
	clock.Close()
	// Output:
	// [2030-01-15 2030-01-22 2030-02-05] <nil>
}
