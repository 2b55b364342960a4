package persist_test

import (
	"context"
	"fmt"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/snapshot"
)

type greeter struct{ greeted int }

type hello struct{}

func (g *greeter) PersistenceID() persist.Key { return persist.Key{Pod: "greeters", Name: "anna"} }

func (g *greeter) Recover(_ *persist.Context, s persist.Snapshot) error { return s.Decode(&g.greeted) }

func (g *greeter) Receive(ctx *persist.Context, msg any) error {
	switch msg.(type) {
	case hello:
		g.greeted++
		ctx.SaveSnapshot(g.greeted)
		ctx.Respond(g.greeted)
	case persist.SnapshotSaved: // the count is durable now
	}
	return nil
}

// A PersistentActor recovers before its first message and saves when it wants
// to.
func ExamplePersistent() {
	ctx := context.Background()
	store := persisttest.NewMemory() // bolt.Open in a program
	greet := func() {
		sys := actor.NewSystem("example", actor.Config{})
		committer := persist.NewCommitter(sys, store, persist.CommitterConfig{})
		ref, err := sys.Spawn("greeter", persist.Persistent(committer, snapshot.Msgpack(), func() persist.PersistentActor { return &greeter{} }))
		if err != nil {
			panic(err)
		}
		n, err := actor.Ask[int](ctx, ref, hello{})
		fmt.Println(n, err)
		_ = committer.Close(ctx)
		_ = sys.Stop(ctx)
	}
	greet()
	greet()
	// Output:
	// 1 <nil>
	// 2 <nil>
}
