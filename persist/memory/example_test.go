package memory_test

import (
	"context"
	"fmt"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/snapshot"
)

func Example() {
	ctx := context.Background()
	store := memory.Open(memory.Config{})
	defer func() { _ = store.Close() }()
	room := persist.Key{Pod: "rooms", Name: "tower-3-21"}
	outcomes, err := store.Commit(ctx, []persist.Unit{{
		Key:    room,
		Record: &snapshot.Record{Revision: 1, Codec: "json", State: []byte(`{"celsius":21.5}`)},
	}})
	if err != nil || outcomes[0].Err != nil {
		panic(fmt.Sprint(err, outcomes))
	}
	before := store.Fork() // keeps this moment, at no cost
	_, err = store.Commit(ctx, []persist.Unit{{Key: room, Delete: true, Force: true}})
	if err != nil {
		panic(err)
	}
	_, err = store.Load(ctx, room)
	fmt.Println(err)
	record, err := before.Load(ctx, room)
	fmt.Println(string(record.State), err)
	// Output:
	// rooms/tower-3-21: not found
	// {"celsius":21.5} <nil>
}
