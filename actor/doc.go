// Package actor is a small actor runtime: actors that handle one message at a
// time, in a tree, with supervision. It needs only the standard library,
// beside the deliberate faults of internal/mutant, which only builds with the tag
// mutants have.
//
//	sys := actor.NewSystem("campus", actor.Config{})
//	room, err := sys.Spawn("room", actor.PropsOf(func() actor.Actor { return &Room{} }))
//	err = room.Tell(Measured{21.5})
//	n, err := actor.Ask[int](ctx, room, HowMany{})
//	err = sys.Stop(ctx)
//
// # What holds
//
// An actor handles one message at a time, and messages from one sender to one
// actor are handled in the order sent. Every ask ends: with an answer, an
// error, or a timeout, which says that the outcome is unknown. A message that
// reaches nobody is a dead letter (System.DeadLetters).
//
// An actor has two mailboxes. The system mailbox (Stop, a supervisor's
// decisions, Ref.TellSystem) goes first. In the user mailbox stand, in order,
// what was told and asked, and also PoisonPill, Terminated and timers, so that
// these do not overtake a last word. The user mailbox can be held.
//
// Mailboxes may be bounded (Mailbox): refuse, have senders wait, drop what comes
// or what has waited longest. Or they are a user's own (Queue).
//
// # Finding
//
// A Ref is an actor's address. System.Lookup finds one by its path; a Selection
// is a path, also a relative one or one with "*", that is followed with each
// message.
//
// # Stopping
//
// An actor that stops takes no more messages; what it had waiting becomes dead
// letters or goes to its parent's Props.OnAbsent. Its children stop first. Then
// its watchers get Terminated, then PostStop is called, then its name is free.
// So whoever spawns a name again on Terminated uses Ref.EnsureChild, or gets
// ErrAlreadyExists now and then.
//
// # Failing
//
// An error or a panic fails the actor, and nobody else: the ask in progress
// ends with it at once, and the parent's Strategy decides what becomes of the
// actor. A restart keeps the mailbox and stops the children. System.Events
// tells of starts, failures, restarts and stops.
//
// # Blocking
//
// A handler should not block: Context.PipeTo runs slow work elsewhere and
// brings its result back as a message. When handlers block all the same,
// workers are added after some 20 ms, so the others go on.
//
// The page docs/actors.md of the repository teaches all of it.
//
// # Time and order
//
// Time, randomness and all running go through one Executor. With
// actortest.Seeded a whole system runs on one goroutine in an order that a
// seed chooses, on a virtual clock. For this to hold, users take time and
// timeouts from the System, and wait by its means.
package actor
