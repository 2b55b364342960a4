package postgres

import (
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	// ErrLocked says that another server serves the store. The error that wraps
	// it says which, and how to end it.
	ErrLocked = errors.New("another server has the store")
	// ErrFenced says that another server has taken the store over since it was
	// opened, so that this one may not write any more, nor trust what it knows.
	// It stays so until the store is closed and opened anew.
	ErrFenced = errors.New("another server has taken the store over")
	// ErrSchema refuses a database whose tables this program cannot use: newer
	// than it, or older where it may not migrate, or not what they should be.
	ErrSchema = errors.New("schema does not fit this program")
)

// SQLSTATEs that this package's own statements raise, by twinsrv_require.
const (
	stateFenced = "TW001" // the store row is not as this server left it
	stateStale  = "TW002" // a record is not as was assumed
)

// SQLSTATEs of the server's own.
const (
	stateUniqueViolation  = "23505"
	stateLockNotAvailable = "55P03"
)

// serverError returns what the server said, or nil when the error is not the
// server's.
func serverError(err error) *pgconn.PgError {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg
	}
	return nil
}

// ended says whether the server ended the session with this error, or the
// connection broke.
func ended(err error) bool {
	pg := serverError(err)
	return pg == nil || fatal(pg)
}

func fatal(pg *pgconn.PgError) bool {
	severity := pg.SeverityUnlocalized
	if severity == "" {
		severity = pg.Severity
	}
	return severity == "FATAL" || severity == "PANIC"
}

// refusesData says whether the server refused a value: data exceptions (22),
// program limits (54), and what people have put on the tables themselves:
// constraints (23) and triggers (P0).
func refusesData(pg *pgconn.PgError) bool {
	return slices.Contains([]string{"22", "54", "23", "P0"}, pg.Code[:min(2, len(pg.Code))])
}
