package persisttest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/snapshot"
)

// A store's tests run the suite with a way to make a fresh store.
func ExampleRun() {
	TestStore := func(t *testing.T) {
		persisttest.Run(t, func(*testing.T) persisttest.Fixture {
			m := persisttest.NewMemory()
			return persisttest.Fixture{
				Store:  m,
				Reopen: func(*testing.T) persist.PersistenceService { m = m.Again(); return m },
			}
		})
	}
	_ = TestStore
}

func ExampleFaultStore() {
	ctx := context.Background()
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	store.OnCommit(2, persisttest.UnknownLost)
	for _, name := range []string{"a", "b", "c"} {
		_, err := store.Commit(ctx, []persist.Unit{{
			Key:    persist.Key{Pod: "rooms", Name: name},
			Record: &snapshot.Record{Revision: 1},
		}})
		fmt.Println(name, err == nil, errors.Is(err, persist.ErrUnknown), errors.Is(err, persist.ErrUnavailable))
	}
	fmt.Println(store.Reopen(ctx))
	// Output:
	// a true false false
	// b false true false
	// c false false true
	// <nil>
}
