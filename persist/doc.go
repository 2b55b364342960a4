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
// entity) are built on lanes directly.
package persist
