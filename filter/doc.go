// Package filter evaluates expressions over an entity's envelope: which entities
// match (conditions and queries), what stands at a path of them (order, groups,
// indexes), and what of them is shown.
//
//   - [Filter]: an expression in CEL (the Common Expression Language) that says
//     yes or no, such as
//     state.celsius > 21.0 && name.startsWith("tower-").
//   - [Path]: a place in the envelope, such as state.floor; its [Value] has a
//     total order.
//   - [Projection]: the chosen parts of the envelope as JSON.
//   - [Subject]: the entity that these look at. It is read where it stands, in
//     the encoding of its codec: nothing is decoded but what is asked for.
//
// # What an expression sees
//
// The variables are pod and name (strings), life and revision (integers),
// changed (a timestamp), and state: what the entity's JSON shows, under the
// names that it has there. Members are state.floor or state["odd name"],
// elements state.list[0]. Integers up to 64 bits are integers, all other numbers
// doubles, and the two compare with each other. What a typed state keeps as a
// time.Time is a timestamp and what it keeps as []byte is bytes; documents have
// strings in their place, which timestamp(state.since) makes one of.
//
// Beside CEL's operators, macros (has, all, exists, exists_one, map, filter) and
// functions there are the string functions of cel-go's ext.Strings, but for
// those whose results have no bound: replace, join, format and quote. Times are
// taken apart in UTC.
//
// # No answer
//
// A key that is missing, a value of another type than an operation needs, a
// null, a division by zero: such a part of an expression has no answer. The
// whole has none either and the entity does not match, unless && or || do not
// need the part: state.a > 1 || true is true for every entity. This is no error;
// has(state.a) asks whether a key is there. So it is with a whole that is neither
// true nor false, as state.a where that is a number. What is no bool for any
// entity, such as name or state.a + state.b, is a [SyntaxError].
//
// # Bounds
//
// A text has at most [MaxText] bytes, nests at most [MaxNesting] levels, makes at
// most [MaxLists] lists and objects, and its regular expressions have at most [MaxPattern] instructions; one that the state
// has in place of a literal and that has more, or is none, has no answer. For one
// entity an expression may cost [MaxCost] steps; a Match beyond that fails with
// [ErrTooCostly]. A step is an operation, an element, or 16 bytes that are looked
// at, and no more than some hundred nanoseconds; a longer Match ends with its
// context. In matches every instruction looks at every byte: a pattern of 20 can
// search 160 kB, one of 200 16 kB, and a plain text without anything of a pattern
// 3.2 MB.
// A [SyntaxError] says the line and the column of what is wrong.
//
// # How fast it is
//
// Comparisons, in, has, startsWith, endsWith, contains and matches between paths
// and constants, and their combinations by !, && and ||, are evaluated on the
// encoded state without allocating. Other parts are left to cel-go, for which
// those members of the state are decoded that the filter names.
package filter
