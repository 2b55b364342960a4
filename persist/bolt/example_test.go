package bolt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/snapshot"
)

func Example() {
	dir, err := os.MkdirTemp("", "bolt")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := bolt.Open(filepath.Join(dir, "campus.db"), bolt.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()

	ctx := context.Background()
	room := persist.Key{Pod: "rooms", Name: "tower-3-21"}
	outcomes, err := store.Commit(ctx, []persist.Unit{{
		Key:     room,
		Record:  &snapshot.Record{Revision: 1, Codec: "json", State: []byte(`{"celsius":21.5}`)},
		Changes: []persist.Change{{Revision: 1, Type: "measured", Codec: "json", Data: []byte(`{"celsius":21.5}`)}},
	}})
	if err != nil || outcomes[0].Err != nil {
		panic(fmt.Sprint(err, outcomes))
	}
	record, err := store.Load(ctx, room)
	fmt.Println(record.Revision, string(record.State), err)
	// Output: 1 {"celsius":21.5} <nil>
}
