// Package pod runs entities: named collections of one type each, on top of one
// store.
//
// Pods is the registry: it is opened on a system and a store, starts typed pods
// (Start), declares document pods (Pods.Declare), and finds entities by pod and
// name. A message to a name goes through the name's slot, which is the entity's
// actor and its mailbox; a slot is made by the first message and leaves when it
// is idle and everything in it is durable. Reading (Get, List) never wakes an
// entity: it is answered from the view of acknowledged state, or from the store
// when the entity is not in memory. What was durable and is not done brings its
// entity back: messages of SendOnce that are not delivered, and reminders when
// they are due.
package pod
