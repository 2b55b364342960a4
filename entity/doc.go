// Package entity is what a user writes: the type of an entity's state, and the
// handlers of its messages.
//
// A Type says how an entity of that type begins (Init), which messages it
// handles (On, Reply, Query), which of them create it, and how durable its
// state is. A Document is an entity whose state is a JSON object, for pods that
// are declared and not programmed. Both compile to a Spec, which is what
// package pod runs.
//
// EntityActor is the actor behind one entity. It handles one message at a
// time, and lets nothing of a turn out (reply, effects, published change)
// before what the turn was computed on is durable.
//
// The page docs/entities.md of the repository teaches it by task.
package entity
