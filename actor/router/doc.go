// Package router spreads messages over workers: actors of one kind, which are
// the router's children.
//
//	pool, err := router.Spawn(sys, "resize", router.Config{
//		Workers: 8,
//		Worker:  actor.PropsOf(func() actor.Actor { return &Resizer{} }),
//		Route:   router.LeastLoaded,
//	})
//	v, err := pool.Ask(ctx, picture) // a worker answers
//
// A router is an actor. It passes each message on with its sender and its ask,
// so that workers answer as if they had been asked themselves. From one sender
// to one worker order is kept.
//
// A worker is spawned when the first message is for it. When it has stopped,
// for whatever reason, the next message that is for it spawns another.
package router
