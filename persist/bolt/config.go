package bolt

import "time"

// Config tunes a Store. The zero value works.
type Config struct {
	// LockTimeout is how long Open and Reopen wait for another process to let
	// go of the file. 0 fails at once.
	LockTimeout time.Duration
	// MaxRecord is the most bytes that the state of one record, the data of one
	// change and the value of one row may have; a unit with more is refused.
	// 0 means 16 MiB.
	MaxRecord int
	// VerifyFirst has Open check all of the file's pages before it returns, which
	// takes about a second for a million entities, and commit once to prove that
	// the file takes writes; when there is no room for that it can be read all the
	// same. Without it Open returns sooner and the check goes on
	// beside the serving; see Open.
	VerifyFirst bool
	// NoVerify skips the check of the file's pages at Open and Reopen, so that
	// a damaged file can still be read where it is whole. It is for saving data
	// and not for serving: most damage then shows as an error of the call that
	// met it, but an entity whose key was overwritten seems absent. The meta
	// pages and the list of free pages are checked all the same, except that one
	// damaged meta page is passed over in favour of the other, which may lack
	// the last commit. With ReadOnly all that can be read is: see there.
	NoVerify bool
	// CommitLog says that the caller puts a commit log in front of the store.
	// Without it a file in front of which one stands is refused with ErrLogged,
	// unless NoVerify is set: what was acknowledged may stand in the log alone.
	// A write that has to wait for a backup fails with a persist.BusyError then, and
	// the log waits; without it the store does.
	CommitLog bool
	// ReadOnly opens a file that is there for reading alone, also on a file system
	// that takes no writes. All of it is checked before Open returns, and nothing
	// is written to it; what is read may not be durable. Calls that write fail.
	//
	// With NoVerify besides, a damaged file is read for the sake of what is whole:
	// the pages that pass every check. List, Load, Rows, RowsOf, Log and Pods go on
	// behind the others, which Store.Lost lists.
	ReadOnly bool

	mapTight bool // tests: nothing is mapped ahead

	tail int             // entries in an entity's tail; tests make it small
	hold <-chan struct{} // tests: nothing is checked after Open before it is closed
}

// salvages says whether what is whole of a damaged file is wanted.
func (c Config) salvages() bool { return c.ReadOnly && c.NoVerify }

func (c Config) withDefaults() Config {
	if c.MaxRecord <= 0 {
		c.MaxRecord = 16 << 20
	}
	if c.tail <= 0 {
		c.tail = tailLength
	}
	return c
}
