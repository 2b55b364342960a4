// Package client talks to the HTTP API of a twinsrv. It needs nothing but the
// standard library.
//
// A Client is an address with a token; an Entity is the address of one entity,
// which may carry what its next requests are conditional on. What comes back is
// decoded into the caller's own types:
//
//	c, err := client.New("http://localhost:8080", client.Config{})
//	room := c.Entity("rooms", "tower-3-21")
//	now, err := client.Get[Room](ctx, room)
//	n, err := client.Ask[int](ctx, room, "enter", Enter{People: 2})
//	_, err = room.IfMatch(now.ETag()).Put(ctx, next)
//	_, err = room.Where("state.celsius > 21.0").Merge(ctx, patch)
//
// # Repeats
//
// A request that failed is sent again, with growing pauses, if that can do no
// harm: when the server says that it did nothing, when the request only reads,
// or when it carries an Idempotency-Key, by which the server knows it again and
// answers as it did the first time. Messages and writes of state get a key by
// themselves. The server remembers keys for a time, by default 256 of an entity
// for 24 hours; a pod whose type remembers none handles a repeat again.
//
// An error of the code OutcomeUnknown, of a write, leaves open whether it was
// made: not even the repeats had an answer. All others say that it was not.
package client
