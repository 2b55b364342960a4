package commitlog

import (
	"log/slog"
	"time"
)

// Config tunes a Store. The zero value works.
type Config struct {
	// SegmentSize is the size of a segment in bytes, and bounds what is not
	// folded yet: at most two segments of it are kept in memory, and on disk
	// there are rarely more than three. A commit that does not fit goes to the
	// store behind. 0 means 64 MiB; less than 64 KiB becomes 64 KiB.
	SegmentSize int64
	// FoldAfter is how long a change waits at most before it is folded, while
	// folding keeps up. 0 means a second.
	FoldAfter time.Duration
	// FoldKeys is the most records, rows and changes that one transaction of the
	// store behind has. 0 means 5,000.
	FoldKeys int
	// MaxRecord is the most bytes that a state, a change or a row may have. It is
	// not above that of the store behind. 0 means 16 MiB.
	MaxRecord int
	// Logger gets what people should know: folds that fail. nil discards.
	Logger *slog.Logger

	// Disk has the log's files; nil is the folder that Open is given. Simulations
	// set it.
	Disk Disk
	// NoBackground leaves all folding to Fold, and to commits that need room.
	// Simulations set it.
	NoBackground bool
}

const (
	defaultSegment = 64 << 20
	minSegment     = 64 << 10
	foldBytes      = 8 << 20 // of states and changes, at which a fold's transaction is closed
)

func (c Config) withDefaults() Config {
	if c.SegmentSize <= 0 {
		c.SegmentSize = defaultSegment
	}
	c.SegmentSize = max(c.SegmentSize, minSegment)
	if c.FoldAfter <= 0 {
		c.FoldAfter = time.Second
	}
	if c.FoldKeys <= 0 {
		c.FoldKeys = 5000
	}
	if c.MaxRecord <= 0 {
		c.MaxRecord = 16 << 20
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
