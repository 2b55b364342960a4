package entity

import "time"

// Durability says when a change of an entity is acknowledged. The zero value
// is Sync.
type Durability struct {
	interval time.Duration
	volatile bool
}

// Sync acknowledges a change once it is durable.
func Sync() Durability { return Durability{} }

// Async acknowledges a change at the end of its turn and makes it durable
// within interval; less than a millisecond counts as one. An unclean stop may
// lose the changes of the last interval, never part of one, and no revision is
// given twice. Creation and deletion are durable before they are acknowledged
// all the same.
func Async(interval time.Duration) Durability {
	return Durability{interval: max(interval, time.Millisecond)}
}

// Volatile keeps entities in memory alone: whatever they are ends with the
// process. They can be used like all others, by other entities and over HTTP,
// also when they are idle; a message of SendOnce between a volatile entity and
// another is sent once as long as the process runs.
func Volatile() Durability { return Durability{volatile: true} }

// IsVolatile reports whether nothing is kept beyond the process.
func (d Durability) IsVolatile() bool { return d.volatile }

// IsAsync reports whether changes are acknowledged before they are durable.
func (d Durability) IsAsync() bool { return d.interval > 0 }

// Interval is the longest time that an asynchronous change stays undurable
// while the store works; 0 for Sync.
func (d Durability) Interval() time.Duration { return d.interval }
