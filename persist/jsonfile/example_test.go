package jsonfile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/jsonfile"
	"github.com/twinsrv/twinsrv/snapshot"
)

func Example() {
	dir, err := os.MkdirTemp("", "jsonfile")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := jsonfile.Open(filepath.Join(dir, "campus"), jsonfile.Config{})
	if err != nil {
		panic(err)
	}
	outcomes, err := store.Commit(context.Background(), []persist.Unit{{
		Key:     persist.Key{Pod: "rooms", Name: "Tower-3"},
		Record:  &snapshot.Record{Revision: 1, Codec: "json", State: []byte(`{"celsius":21.5}`)},
		Changes: []persist.Change{{Revision: 1, Type: "measured", Codec: "json", Data: []byte(`{"celsius":21.5}`)}},
	}})
	if err != nil || outcomes[0].Err != nil {
		panic(fmt.Sprint(err, outcomes))
	}
	if err := store.Close(); err != nil {
		panic(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "campus", "pods", "rooms", "!tower-3.json"))
	if err != nil {
		panic(err)
	}
	text = []byte(strings.SplitAfter(string(text), "}")[0])
	fmt.Println(string(text))
	// Output:
	// {
	//   "format": 1,
	//   "pod": "rooms",
	//   "name": "Tower-3",
	//   "position": 1,
	//   "life": 1,
	//   "revision": 1,
	//   "codec": "json",
	//   "state": {
	//     "celsius": 21.5
	//   }
}
