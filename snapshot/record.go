package snapshot

import "time"

// Record is an entity's state at one revision, as a store keeps it.
type Record struct {
	// Life is the position of the commit that created the entity.
	Life uint64
	// Revision counts the entity's changes within its life, from 1.
	Revision uint64
	// Reserved is the highest revision that may have been given out before
	// this record was written. It equals Revision except for entities that
	// acknowledge before they are durable: after an unclean stop these go on
	// behind Reserved, so that no revision is given twice.
	Reserved uint64
	// Changed is the time of the last change, in UTC with nanoseconds.
	Changed time.Time
	// Schema is the version of the state's type; 0 is the first.
	Schema uint32
	// Codec names the codec that encoded State.
	Codec string
	// State is the encoded state. The holder of the record owns it and nobody
	// changes its bytes.
	State []byte
}
