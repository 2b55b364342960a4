package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/client"
	"github.com/twinsrv/twinsrv/httpapi"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/pod"
)

type room struct {
	Celsius float64 `json:"celsius"`
	Floor   string  `json:"floor,omitempty"`
}

// A document is created, changed on a condition, and read.
func Example() {
	ctx := context.Background()
	address, stop := serve()
	defer stop()

	c, err := client.New(address, client.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	if _, _, err := c.PutPod(ctx, "rooms", client.Definition{}); err != nil {
		fmt.Println(err)
		return
	}
	tower := c.Entity("rooms", "tower-3-21")
	if _, err := tower.Put(ctx, room{Celsius: 19.5, Floor: "3"}); err != nil {
		fmt.Println(err)
		return
	}
	warmer := map[string]any{"celsius": 21}
	_, err = tower.Where("state.celsius > 30.0").Merge(ctx, warmer)
	fmt.Println("too cold:", errors.Is(err, client.ConditionFailed))
	if _, err := tower.Where("state.celsius < 20.0").Merge(ctx, warmer); err != nil {
		fmt.Println(err)
		return
	}
	now, err := client.Get[room](ctx, tower)
	fmt.Println(now.Name, now.Revision, now.State.Celsius, err)
	// Output:
	// too cold: true
	// tower-3-21 2 21 <nil>
}

// serve starts a server that keeps everything in memory.
func serve() (address string, stop func()) {
	sys := actor.NewSystem("example", actor.Config{})
	pods, err := pod.Open(sys, memory.Open(memory.Config{}), pod.Config{})
	if err != nil {
		panic(err)
	}
	api := httpapi.New(pods, httpapi.Config{})
	srv := httptest.NewServer(api)
	return srv.URL, func() {
		srv.Close()
		api.Close()
		_ = pods.Close(context.Background())
		_ = sys.Stop(context.Background())
	}
}
