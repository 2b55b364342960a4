package pgtest_test

import (
	"fmt"

	"github.com/twinsrv/twinsrv/persist/postgres"
	"github.com/twinsrv/twinsrv/persist/postgres/pgtest"
)

// A server for a test's lifetime, and a network to it that can be cut.
func Example() {
	if why := pgtest.Missing(); why != "" {
		fmt.Println("needs postgres:", why)
		return
	}
	cluster, err := pgtest.Start(ctx, pgtest.Options{NoSync: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = cluster.Stop() }()
	url, err := cluster.Database(ctx, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	proxy, err := pgtest.NewProxy(cluster.Address())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer proxy.Close()
	if url, err = pgtest.Through(proxy.Address(), url); err != nil {
		fmt.Println(err)
		return
	}
	store, err := postgres.Open(ctx, url, postgres.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	proxy.Cut()
	cluster.Kill()
	fmt.Println(cluster.Up(ctx))
}
