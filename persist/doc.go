// Package persist makes actors durable.
//
// PersistenceService is the port that every store implements: it commits
// Units, one atomic step of one entity each, and says for each unit what became
// of it. Committer stands before a service and turns what queues up during one
// sync into the next group. A Lane is one activation's ordered way into the
// committer: when a unit of it fails, everything queued behind that unit is
// refused, because it was computed on something that never happened.
//
// PersistentActor is an actor with a snapshot of its own; entities (package
// entity) are built on lanes directly. An actor that cannot be recovered is in
// quarantine until a message ends that (ErrQuarantined).
//
// PersistentServiceManager is a durable queue of jobs: each is done at least once
// by a worker of its own.
//
// The journal keeps what CommitterConfig says, by count and by age. A Projection
// is a durable subscription to it, with a table that is always what the changes
// up to its position make of it.
//
// Check reads a whole store and says what is wrong with it, and Copy brings one
// store's content into another. Pods whose names begin with $ are the package's
// own: $projections for projections and their tables, $queues for queues of jobs,
// $journal for through which position the journal was trimmed, $copy while a copy
// is under way.
package persist
