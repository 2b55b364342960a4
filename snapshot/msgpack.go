package snapshot

// Msgpack returns a new msgpack codec.
func Msgpack() Codec { panic("being written") }
