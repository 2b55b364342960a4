// Package snapshot turns an entity's state into bytes that can be trusted later:
// canonical codecs, so that equal states have equal bytes; a checksummed
// envelope, so that damage is seen; and schema versions with upgrades, so that
// old states stay readable.
//
//   - [Codec]: [Msgpack] for typed states, [JSON] for documents. Check refuses
//     types of which something would be forgotten.
//   - [Record]: a state with its life, revision, time and schema version, written
//     by Append and read by [Parse].
//   - [Upgrades]: what carries old states forward.
//   - [CanonicalJSON], [ParseJSON], [AppendJSON]: strict JSON whose numbers keep
//     their text.
//
// The package does no I/O, reads no clock and holds no state of its own.
package snapshot
