package postgres

import (
	"log/slog"
	"time"
)

// Config tunes a Store. The zero value works.
type Config struct {
	// Schema is the schema that holds the tables, so that several stores may
	// live in one database. It is created if absent. Empty means what the URL
	// says by ?schema= or ?search_path= (its first entry), else "twinsrv".
	Schema string
	// Timeout bounds each call, but for what the caller's context allows less.
	// A commit that ran out of it is persist.ErrUnknown. 0 means 10 s.
	Timeout time.Duration
	// LockTimeout is how long Open waits for another server to let go of the
	// store. 0 means 2 s, which is enough when that server was killed; negative
	// means not at all.
	LockTimeout time.Duration
	// Readers is the most connections that reads use; commits have two of their
	// own and the lock another. 0 means 4.
	Readers int
	// MaxRecord is the most bytes that the state of one record, the data of one
	// change and the value of one row may have; a unit with more is refused.
	// 0 means 16 MiB.
	MaxRecord int
	// NoMigrate makes Open refuse a schema that is older than the program,
	// instead of bringing it up to date.
	NoMigrate bool
	// Logger gets what people should know: lost connections, and settings of
	// the server that endanger what is acknowledged. nil logs nothing.
	Logger *slog.Logger

	// halveFrom is how many units a call has at least that is committed in two
	// transactions.
	halveFrom int
}

func (c Config) withDefaults() Config {
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	if c.LockTimeout == 0 {
		c.LockTimeout = 2 * time.Second
	}
	if c.Readers <= 0 {
		c.Readers = 4
	}
	if c.MaxRecord <= 0 {
		c.MaxRecord = 16 << 20
	}
	if c.halveFrom == 0 {
		c.halveFrom = defaultHalveFrom
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
