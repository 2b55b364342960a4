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

// A projection keeps a table of its own in step with the journal.
func ExampleStartProjection() {
	ctx := context.Background()
	sys := actor.NewSystem("example", actor.Config{})
	committer := persist.NewCommitter(sys, persisttest.NewMemory(), persist.CommitterConfig{})
	perPod, err := persist.StartProjection(committer, persist.Projection{
		Name: "changes-per-pod",
		Apply: func(ctx context.Context, t *persist.Table, changes []persist.Change) error {
			for _, c := range changes {
				old, _, err := t.Get(ctx, c.Key.Pod)
				if err != nil {
					return err
				}
				t.Put(c.Key.Pod, append(old, '*'))
			}
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	written := make(chan persist.Outcome, 1)
	lane := committer.Lane(func(r []persist.Result) { written <- r[0].Outcome })
	lane.Submit(persist.Unit{
		Key:     persist.Key{Pod: "rooms", Name: "r1"},
		Record:  &snapshot.Record{Revision: 1, Reserved: 1, Codec: "json", State: []byte(`{}`)},
		Changes: []persist.Change{{Revision: 1, Type: "made"}},
	}, nil)
	outcome := <-written
	fmt.Println(perPod.Wait(ctx, outcome.Position)) // so that it shows what was written
	rooms, _, err := perPod.Get(ctx, "rooms")
	fmt.Println(string(rooms), err)
	_ = perPod.Stop(ctx)
	_ = committer.Close(ctx)
	_ = sys.Stop(ctx)
	// Output:
	// <nil>
	// * <nil>
}
