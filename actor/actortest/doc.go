// Package actortest tests actors: the Seeded executor runs a whole system on
// one goroutine, with a virtual clock, in an order that a seed chooses; a Probe
// is an actor that a test holds and asks what came.
//
//	exec := actortest.NewSeeded(1)
//	defer exec.Close()
//	sys := actor.NewSystem("test", actor.Config{Executor: exec})
//
// With the seeded executor nothing happens by itself: a test runs it (Run,
// RunFor, RunUntil, Step), or waits with the system's own means (an ask,
// Promise.Wait, System.AwaitStop, System.Stop), which run it until the wait is
// over. All of it, tests included, must stay on one goroutine, and must not
// block by other means than the system's: no channels, no time.Sleep.
package actortest
