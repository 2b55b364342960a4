package client_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/twinsrv/twinsrv/client"
)

// docs/http.md quotes the middle of each example here; the test of
// internal/guide compares them.

func Example_declare() {
	ctx := context.Background()
	address, stop := serve()
	defer stop()

	c, err := client.New(address, client.Config{Token: ""}) // the bearer token, if the server wants one
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	pod, created, err := c.PutPod(ctx, "rooms", client.Definition{Index: []string{"state.floor"}})
	fmt.Println(pod.Name, created, err)

	tower := c.Entity("rooms", "tower-3-21")
	ack, err := tower.Send(ctx, "merge", room{Celsius: 21.5, Floor: "3"})
	fmt.Println(ack.Revision, err)
	now, err := client.Get[room](ctx, tower)
	fmt.Println(now.State.Celsius, err)
	// Output:
	// rooms true <nil>
	// 1 <nil>
	// 21.5 <nil>
}

func Example_query() {
	ctx := context.Background()
	c, stop := serveRooms(ctx)
	defer stop()

	warm := client.QueryOptions{Pods: []string{"rooms"}, Filter: "state.celsius > 20.0", Sort: []string{"-state.celsius"}}
	for twin, err := range client.Query[room](ctx, c, warm) {
		if err != nil {
			fmt.Println(err) // the last one, or an entity that cannot be read
			continue
		}
		fmt.Println(twin.Name, twin.State.Celsius)
	}
	floors, err := c.Groups(ctx, client.QueryOptions{}, []string{"state.floor"}, "avg(state.celsius)")
	for _, f := range floors {
		fmt.Println(f.By["state.floor"], f.Count, f.Values["avg(state.celsius)"])
	}
	fmt.Println(err)
	// Output:
	// tower-4-1 24.5
	// tower-3-21 21.5
	// 3 2 20.5
	// 4 1 24.5
	// <nil>
}

func Example_change() {
	ctx := context.Background()
	c, stop := serveRooms(ctx)
	defer stop()

	tower := c.Entity("rooms", "tower-3-21")
	for {
		now, err := client.Get[room](ctx, tower)
		if err != nil {
			fmt.Println(err)
			return
		}
		now.State.Celsius++
		_, err = tower.IfMatch(now.ETag()).Put(ctx, now.State)
		if !errors.Is(err, client.StaleRevision) {
			fmt.Println(now.State.Celsius, err)
			break
		}
		// Somebody else was faster: read it again.
	}
	_, err := tower.Where("state.celsius > 30.0").Merge(ctx, map[string]any{"window": "open"})
	fmt.Println(errors.Is(err, client.ConditionFailed))
	_, err = tower.Patch(ctx, client.Test("/floor", "3"), client.Add("/devices", []string{"lamp"}))
	fmt.Println(err)
	_, err = tower.PutAt(ctx, "/devices/-", "blind")
	fmt.Println(err)
	// Output:
	// 22.5 <nil>
	// true
	// <nil>
	// <nil>
}

func Example_retry() {
	ctx := context.Background()
	c, stop := serveRooms(ctx)
	defer stop()

	tower := c.Entity("rooms", "tower-3-21")
	first, err := tower.WithKey("order-4711").Send(ctx, "merge", map[string]any{"people": 3})
	fmt.Println(first.Revision, err)
	again, err := tower.WithKey("order-4711").Send(ctx, "merge", map[string]any{"people": 3})
	fmt.Println(again.Revision, err)
	if errors.Is(err, client.OutcomeUnknown) {
		fmt.Println("not even the repeats had an answer: send it once more, with the same key")
	}
	// Output:
	// 2 <nil>
	// 2 <nil>
}

func Example_watch() {
	ctx := context.Background()
	c, stop := serveRooms(ctx)
	defer stop()

	var last uint64 // of an earlier watch; 0 begins with all that the history keeps
	o := client.WatchOptions{Pods: []string{"rooms"}, Filter: "state.celsius > 20.0", Resume: true, After: last}
	for event, err := range client.Watch[room](ctx, c, o) {
		if err != nil {
			fmt.Println(err) // the context's, or one that no repeat would mend
			break
		}
		if event.Kind == client.Gap {
			fmt.Println("changes are missing: read anew")
			continue
		}
		fmt.Println(event.Kind, event.Name, event.Revision)
		last = event.ID
		if event.Name == "tower-4-1" {
			break
		}
	}
	fmt.Println("the next watch begins after", last)
	// Output:
	// changed tower-3-21 1
	// changed tower-4-1 1
	// the next watch begins after 4
}

func Example_errors() {
	ctx := context.Background()
	c, stop := serveRooms(ctx)
	defer stop()

	_, err := client.Get[room](ctx, c.Entity("rooms", "nowhere"))
	fmt.Println(errors.Is(err, client.NoSuchEntity))
	_, err = c.Count(ctx, client.QueryOptions{Filter: "state.celsius >"})
	var e *client.Error
	if errors.As(err, &e) {
		fmt.Println(e.Status, e.Code, e.Line, e.Column)
	}
	// Output:
	// true
	// 400 bad_filter 1 16
}

// serveRooms starts a server that has three rooms.
func serveRooms(ctx context.Context) (*client.Client, func()) {
	address, stop := serve()
	c, err := client.New(address, client.Config{})
	if err == nil {
		_, _, err = c.PutPod(ctx, "rooms", client.Definition{})
	}
	for _, r := range []struct {
		name  string
		state room
	}{{"tower-3-21", room{21.5, "3"}}, {"tower-3-22", room{19.5, "3"}}, {"tower-4-1", room{24.5, "4"}}} {
		if err == nil {
			_, err = c.Entity("rooms", r.name).Put(ctx, r.state)
		}
	}
	if err != nil {
		panic(err)
	}
	return c, func() { c.Close(); stop() }
}
