package pod_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/pod"
)

type room struct {
	Celsius   float64 `json:"celsius"`
	Occupants int     `json:"occupants"`
}

type measured struct {
	Celsius float64 `json:"celsius"`
}

type enter struct {
	People int `json:"people"`
}

var rooms = entity.Type[room]{
	Name: "rooms",
	Handlers: entity.Handlers[room]{
		"measured": entity.On(func(_ *entity.Context, r *room, m measured) error {
			r.Celsius = m.Celsius
			return nil
		}),
		"enter": entity.Reply(func(_ *entity.Context, r *room, m enter) (int, error) {
			if r.Occupants+m.People < 0 {
				return 0, entity.Rejectf("the room has %d people", r.Occupants)
			}
			r.Occupants += m.People
			return r.Occupants, nil
		}),
	},
}

// A Go service embeds pods of typed entities: a message creates the entity, an
// answer means that it is durable.
func Example() {
	dir, err := os.MkdirTemp("", "campus")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	ctx := context.Background()
	sys := actor.NewSystem("campus", actor.Config{})
	defer func() { _ = sys.Stop(ctx) }()
	store, err := bolt.Open(filepath.Join(dir, "campus.db"), bolt.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = store.Close() }()
	pods, err := pod.Open(sys, store, pod.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = pods.Close(ctx) }()
	h, err := pod.Start(pods, rooms)
	if err != nil {
		panic(err)
	}

	if err := h.Tell(ctx, "tower-3-21", measured{Celsius: 21.5}); err != nil {
		panic(err)
	}
	n, err := entity.Ask[int](ctx, h.Ref("tower-3-21"), enter{People: 2})
	fmt.Println(n, err)
	_, err = entity.Ask[int](ctx, h.Ref("tower-3-21"), enter{People: -5})
	fmt.Println(err)
	view, err := h.Get(ctx, "tower-3-21")
	fmt.Println(view.Revision, view.State, err)
	// Output:
	// 2 <nil>
	// rejected: the room has 2 people
	// 2 {21.5 2} <nil>
}
