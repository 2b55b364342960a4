package persist_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
)

// Letter is a job.
type Letter struct {
	To string `json:"to"`
}

// A PersistentServiceManager has jobs done that survive the process.
func ExamplePersistentServiceManager() {
	ctx := context.Background()
	store := persisttest.NewMemory() // bolt.Open in a program
	posted := make(chan string)

	// run is one run of the program.
	run := func(post func(ctx context.Context, job persist.Job[Letter]) error, letters ...Letter) {
		sys := actor.NewSystem("example", actor.Config{})
		committer := persist.NewCommitter(sys, store, persist.CommitterConfig{})
		manager := persist.PersistentServiceManager[Letter]{
			Name: "letters", Slots: 1, Work: post, Committer: committer, MinBackoff: time.Millisecond,
		}
		office, err := sys.Spawn("post-office", manager.Props())
		if err != nil {
			panic(err)
		}
		for _, l := range letters {
			if _, err := actor.Ask[persist.JobAccepted](ctx, office, l); err != nil { // durable when it is answered
				panic(err)
			}
		}
		fmt.Println(<-posted)
		if len(letters) == 0 {
			fmt.Println(<-posted)
		}
		_ = sys.Stop(ctx)
		_ = committer.Close(ctx)
	}

	run(func(ctx context.Context, job persist.Job[Letter]) error {
		posted <- fmt.Sprintf("attempt %d: %s is not at home", job.Attempt, job.Payload.To)
		<-ctx.Done() // the program ends
		return ctx.Err()
	}, Letter{To: "anna"}, Letter{To: "bert"})

	run(func(_ context.Context, job persist.Job[Letter]) error {
		if job.Attempt == 1 {
			return errors.New("wrong number") // is tried again
		}
		posted <- fmt.Sprintf("attempt %d: %s has it", job.Attempt, job.Payload.To)
		return nil
	})
	// Output:
	// attempt 1: anna is not at home
	// attempt 2: anna has it
	// attempt 2: bert has it
}
