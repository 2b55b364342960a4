package persist

import (
	"context"
	"io"
	"time"

	"github.com/twinsrv/twinsrv/snapshot"
)

// Key names an entity in a store.
type Key struct {
	Pod, Name string
}

// String returns the key as pod/name.
func (k Key) String() string { return k.Pod + "/" + k.Name }

// Unit is one atomic step of one entity. Either all of it is durable or
// nothing of it is.
//
// A unit with Expect 0 creates: it needs the key to be absent, and its life is
// the position that the store gives its first change. A unit with Expect > 0
// continues: it needs the stored record to have that revision and that life.
// Life 0 with Expect > 0 means "the life that an earlier unit of this same
// Commit call created", and conflicts when there is none.
type Unit struct {
	Key    Key
	Life   uint64
	Expect uint64

	// Record is the state after the step; its Life is filled in by the store.
	// It is nil when Delete is set, and may be nil for a unit of rows alone.
	Record *snapshot.Record
	// Delete removes the record and every row of the key.
	Delete bool
	// Force makes Delete unconditional: it ends a record that cannot be read.
	// Deleting an absent key by force is applied and changes nothing.
	Force bool

	// Changes go to the journal, in order. Their Key, Life and Position are
	// filled in by the store.
	Changes []Change
	// Rows are written and removed together with the record.
	Rows []RowOp
}

// Change is one step between two revisions of an entity, as the journal keeps
// it.
type Change struct {
	Position uint64
	Key      Key
	Life     uint64
	Revision uint64
	Time     time.Time
	// Type says what happened: a message's or an event's name, or "deleted".
	Type string
	// Schema, Codec and Data hold the state after the step, or the event that
	// led to it. Data is empty for a deletion.
	Schema uint32
	Codec  string
	Data   []byte
	// Event says that Data is an event of an entity whose truth is the journal.
	// Trim keeps it as long as the life it belongs to.
	Event bool
	// Err, in what a store hands out, says why the change cannot be read. It
	// wraps snapshot.ErrCorrupt; Position is right, the other fields are what
	// could be read. A unit's changes have none.
	Err error
}

// RowOp writes (or, with Delete, removes) one row of a unit's entity.
type RowOp struct {
	Kind   string // [a-z][a-z0-9-]*
	ID     string // not empty, unique per kind and entity; no U+0000
	Value  []byte
	Delete bool
}

// Row is something small that belongs to an entity and commits with it: an
// outbox entry, an inbox cursor, a first answer, a reminder.
type Row struct {
	Kind  string
	Key   Key
	ID    string
	Value []byte
	// Err is set instead of Value when the row cannot be read. It wraps
	// snapshot.ErrCorrupt.
	Err error
}

// Outcome is what became of one unit.
type Outcome struct {
	// Life is the entity's life after the unit; Position is that of the unit's
	// last change, or the one spent on it when it has none.
	Life, Position uint64
	// Err is nil when the unit is durable. Otherwise nothing of it was applied
	// and Err wraps ErrConflict or ErrInvalid, with the key.
	Err error
}

// Item is one line of a listing. Err is set instead of Record when the record
// cannot be read (it wraps snapshot.ErrCorrupt or snapshot.ErrNewer).
type Item struct {
	Name   string
	Record snapshot.Record
	Err    error
}

// ListOptions selects a page of a pod's entities in the byte order of their
// names.
type ListOptions struct {
	// After is the name behind which the page starts; empty starts at the
	// first.
	After string
	// Prefix, if not empty, restricts the page to names that start with it.
	Prefix string
	// Limit is the most items a page has. 0 means 100.
	Limit int
	// MaxBytes ends a page early, once its states have so many bytes; it has
	// at least one item all the same. 0 means 4 MiB.
	MaxBytes int
}

// WithDefaults returns the options with what is 0 filled in.
func (o ListOptions) WithDefaults() ListOptions {
	if o.Limit <= 0 {
		o.Limit = 100
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 4 << 20
	}
	return o
}

// Page is a part of a listing.
type Page struct {
	Items []Item
	// More says that there are items behind the last one.
	More bool
}

// PersistenceService is the port that every store implements. All methods are
// safe for concurrent use. Bytes handed in stay the caller's and are not kept;
// bytes handed out are the caller's.
//
// Every method fails with ErrUnavailable when the store is closed or broken;
// then nothing was done.
type PersistenceService interface {
	// Commit makes the units durable, in order, and returns an outcome for
	// each. Units of one key see the earlier ones of the same call. A unit that
	// conflicts or is invalid fails alone, but for the later units of its key in
	// the same call: these were computed on it and conflict.
	//
	// An error means the whole call: wrapping ErrInvalid, nothing was applied
	// because the store refused some unit's data; wrapping ErrUnavailable,
	// nothing was applied; any other wraps ErrUnknown, and all, some or none of
	// the units may be durable.
	Commit(ctx context.Context, units []Unit) ([]Outcome, error)

	// Load reads one record. It fails with ErrNotFound, snapshot.ErrCorrupt or
	// snapshot.ErrNewer, each wrapped with the key.
	Load(ctx context.Context, key Key) (snapshot.Record, error)

	// List reads a page of a pod's records.
	List(ctx context.Context, pod string, o ListOptions) (Page, error)

	// Changes reads an entity's changes of one life with a revision of at least
	// from, oldest first, at most limit. Life 0 means every life, in order.
	Changes(ctx context.Context, key Key, life, from uint64, limit int) ([]Change, error)

	// Log reads the store's changes behind a position, in order, at most limit.
	Log(ctx context.Context, after uint64, limit int) ([]Change, error)

	// Trim drops changes that are behind the position after and not behind
	// through. It looks at no more than limit of them, oldest first. Events
	// (Change.Event) stay while their life does: while the entity has a record
	// of that life. Records and rows stay.
	Trim(ctx context.Context, after, through uint64, limit int) (Trimmed, error)

	// Rows reads the rows of a kind in the order of pod, name and ID, behind
	// the given one (nil starts at the first), at most limit. An empty kind
	// means every kind, in the order of kinds.
	Rows(ctx context.Context, kind string, after *Row, limit int) ([]Row, error)

	// RowsOf reads all rows of an entity, in the order of kind and ID. Where a
	// store has them with the record, and that cannot be read, neither can they: the
	// error is that of Load.
	RowsOf(ctx context.Context, key Key) ([]Row, error)

	// Pods returns the names of the pods that have records, in byte order.
	Pods(ctx context.Context) ([]string, error)

	// Position returns the highest position that was given to a change or a
	// unit; 0 if none was.
	Position(ctx context.Context) (uint64, error)

	// Close releases the store. What was acknowledged stays durable.
	Close() error
}

// LifeFinder is implemented by stores that find an entity's lives without reading
// them. NextLife does without, too.
type LifeFinder interface {
	// NextLife returns the first life of an entity, behind one, that the journal
	// has changes of; 0 if there is none.
	NextLife(ctx context.Context, key Key, after uint64) (uint64, error)
}

// Trimmed is what a Trim did.
type Trimmed struct {
	// Dropped is how many changes are gone.
	Dropped int
	// Through is the position up to which Trim has looked; the next one goes on
	// behind it.
	Through uint64
}

// Reopener is implemented by stores that must be opened anew after a commit
// whose outcome is unknown. Until Reopen returns nil the store is unavailable;
// afterwards everything that it reads is durable. A store that stays open for
// reading after a commit that has found no room fails Reopen as long as there is
// none.
type Reopener interface {
	Reopen(ctx context.Context) error
}

// Importer is implemented by stores that can take what another store holds.
type Importer interface {
	// Import makes the batch durable as it is, with its lives, revisions and
	// positions: records and rows replace those of the same key, changes those
	// of the same position. A batch may be imported again. Afterwards the store
	// gives positions above all that it was handed, and above Batch.Position.
	//
	// Nobody else writes meanwhile. An error means that all, some or none of it
	// is there. It wraps ErrInvalid when the batch must not be stored.
	Import(ctx context.Context, b Batch) error
}

// Batch is what an Importer takes at a time.
type Batch struct {
	Records  []Stored
	Changes  []Change
	Rows     []Row
	Position uint64
}

// Stored is a record with its key.
type Stored struct {
	Key    Key
	Record snapshot.Record
}

// Backuper is implemented by stores that can write themselves out while they
// are in use.
type Backuper interface {
	// Backup writes everything that was acknowledged before the call, and
	// nothing that is half done, as of one moment. Commits go on meanwhile. The
	// package of the store says what is written and how it is restored.
	Backup(ctx context.Context, w io.Writer) error
}

// TellingBackuper is implemented by a Backuper that takes its time before it writes
// the first byte, and tells when others need not wait for it.
type TellingBackuper interface {
	Backuper
	// BackupTelling is Backup, and calls begun once the moment is fixed of which
	// the backup will be: what is written to the store from then on is not in it.
	// begun is called once, unless the backup fails before that.
	BackupTelling(ctx context.Context, w io.Writer, begun func()) error
}

// Lossy is implemented by stores that go on behind parts of them that cannot be
// read, where it is not known what those have.
type Lossy interface {
	// Lost lists those parts, as problems of the kind LostPart. Load of a record
	// that would stand in one of them fails with snapshot.ErrCorrupt.
	Lost() []Problem
}

// Compacter is implemented by stores whose files keep room that nothing needs.
type Compacter interface {
	// Compact gives that room back. Nobody else uses the store meanwhile.
	Compact(ctx context.Context) error
}
