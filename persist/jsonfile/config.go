package jsonfile

import (
	"log/slog"
	"time"
)

// Config tunes a Store. The zero value works.
type Config struct {
	// LockTimeout is how long Open waits for another process to let go of the
	// folder. 0 fails at once.
	LockTimeout time.Duration
	// MaxRecord is the most bytes that the state of one record, the data of one
	// change and the value of one row may have; a unit with more is refused.
	// 0 means 16 MiB.
	MaxRecord int
	// Flush is how long after a commit the entities' files show it, at the
	// latest; several commits to one entity are then one file. Until then it is
	// in the journal, which is just as durable. 0 means one second; a negative
	// one flushes only for MaxHeld, Store.Flush and Close.
	Flush time.Duration
	// MaxHeld is how many bytes of states and rows wait in memory for their
	// files before commits wait for these. 0 means 64 MiB.
	MaxHeld int
	// IgnoreMissing takes the entities' files as they are found, where Open
	// would refuse because some were removed or put there since it last closed.
	IgnoreMissing bool
	// Logger gets what people should know: entities' files that cannot be written.
	// nil discards.
	Logger *slog.Logger

	segment int64 // bytes after which a new segment of the journal begins
	files   fsys  // where everything is; tests have disks of their own
	single  bool  // no goroutine of its own
}

func (c Config) withDefaults() Config {
	if c.MaxRecord <= 0 {
		c.MaxRecord = 16 << 20
	}
	if c.Flush == 0 {
		c.Flush = time.Second
	}
	if c.MaxHeld <= 0 {
		c.MaxHeld = 64 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.segment <= 0 {
		c.segment = 16 << 20
	}
	if c.files == nil {
		c.files = disk{}
	}
	return c
}
