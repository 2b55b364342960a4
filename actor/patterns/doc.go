// Package patterns has the actors that applications are made of, ready-made.
// Most are props, to be spawned where they should live:
//
//	jobs, err := sys.Spawn("jobs", patterns.ServiceManager(worker, patterns.ServiceConfig{Slots: 10}))
//	answer, err := jobs.Ask(ctx, job)
//
// For work: ServiceManager has each message handled by a worker of its own, so
// many at a time. Pipeline sends messages through stages, PipelineHub is a stage
// that fans out, PipelineBuilder makes a pipeline of messages.
//
// For passing on: PubSub tells messages to those who have subscribed to their
// type, ThrottlingRelay and KeyedThrottlingRelay pass them on at a rate, Proxy is
// a message on its way by way of another.
//
// For asking: Reaper asks many and gathers, ReapTransform answers for all
// children of an actor, CompletionService gives callers that are no actors, such
// as HTTP handlers, answers as futures.
//
// And small ones: DelegatedYesNo, Log, Null.
//
// # What holds
//
// None blocks, and each queue is bounded. Messages keep their sender and their
// ask. What finds no room, and what is left when an actor stops, becomes a dead
// letter, and its ask fails with an error that wraps actor.ErrMailboxFull or
// actor.ErrStopped. What holds a queue knows Status, Pause and Continue.
//
// A panic or an error in a user's part, a worker, a stage, a function in a
// config, harms the message in hand and nothing else.
//
// The page docs/patterns.md of the repository says when to use which, and when a
// plain Go construct is better.
package patterns
