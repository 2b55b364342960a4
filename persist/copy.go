package persist

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/twinsrv/twinsrv/snapshot"
)

// CopyOptions tunes Copy. The zero value works.
type CopyOptions struct {
	// SkipUnreadable leaves out what cannot be read, with the rows of records
	// that cannot. Without it Copy stops at the first such part.
	SkipUnreadable bool
	// Progress, if set, is called after each page.
	Progress func(CopyProgress)
}

// CopyProgress is how far a copy is.
type CopyProgress struct {
	// Doing is "records", "rows", "changes" or "verify", in this order.
	Doing string
	// Counts is what was copied so far, also before an interruption; while
	// verifying, what was read again.
	Counts CopyCounts
	// Position is that of the last change that was copied, and Through the last
	// that there is to copy.
	Position, Through uint64
}

// CopyCounts counts what was copied.
type CopyCounts struct {
	Records int `json:"records"`
	Rows    int `json:"rows"`
	Changes int `json:"changes"`
}

// CopyReport is what Copy has done.
type CopyReport struct {
	// Counts is what the destination has, as it was read back.
	Counts CopyCounts
	// Digest is the SHA-256 of all that was copied, in hexadecimal: that of the
	// source and, as it was read back, of the destination.
	Digest string
	// Resumed says that an earlier copy was gone on with.
	Resumed bool
	// Skipped are the first 1,000 parts that were left out because they could
	// not be read, and SkippedCount is how many there are.
	Skipped      []Problem
	SkippedCount int
}

var (
	// ErrNotEmpty refuses a destination that holds data of its own, or a copy of
	// another source.
	ErrNotEmpty = errors.New("the destination is not empty")
	// ErrNoImporter refuses a destination that takes no copies.
	ErrNoImporter = errors.New("the store takes no copies: it is no persist.Importer")
	// ErrNotCopied says that what was read back is not what was copied.
	ErrNotCopied = errors.New("the destination does not hold what the source does")
)

// Copy copies everything that a store holds, with its lives, revisions and
// positions, into an empty one, and reads both again to see that they are equal.
// Nobody else writes to either meanwhile. Memory is bounded by the size of
// pages.
//
// A copy that was interrupted is gone on with by another Copy of the same
// source, unchanged, into the same destination: how far it is stands there in
// the record $copy/progress, which is removed at the end. Nobody should use a
// store that has it: see CopyUnfinished.
func Copy(ctx context.Context, from, to PersistenceService, o CopyOptions) (CopyReport, error) {
	im, ok := to.(Importer)
	if !ok {
		return CopyReport{}, fmt.Errorf("copy the store: %w", ErrNoImporter)
	}
	c := &copying{from: from, to: to, im: im, o: o, skipped: map[Key]bool{}}
	if err := c.run(ctx); err != nil {
		return c.report, fmt.Errorf("copy the store: %w", err)
	}
	return c.report, nil
}

// CopyUnfinished says that a store is the destination of a copy that has not
// come to its end.
func CopyUnfinished(ctx context.Context, s PersistenceService) (bool, error) {
	_, err := s.Load(ctx, copyKey())
	switch {
	case errors.Is(err, ErrNotFound):
		return false, nil
	case err == nil, errors.Is(err, snapshot.ErrCorrupt), errors.Is(err, snapshot.ErrNewer):
		return true, nil
	}
	return false, fmt.Errorf("find out whether the store is an unfinished copy: %w", err)
}

// copyKey is where the destination notes how far a copy is.
func copyKey() Key { return Key{Pod: "$copy", Name: "progress"} }

// copyState is the state of that record.
type copyState struct {
	Source   string     `json:"source"` // fingerprint
	Doing    string     `json:"doing"`
	Record   copyMark   `json:"record,omitzero"` // of the last record that is there
	Row      copyMark   `json:"row,omitzero"`    // of the last row
	Position uint64     `json:"position"`        // of the last change
	Counts   CopyCounts `json:"counts"`
	Skipped  []copyMark `json:"skipped,omitempty"` // records that were left out
}

// copyMark is the place of a record or a row. Names are bytes, as JSON keeps
// only text that is UTF-8.
type copyMark struct {
	Kind string `json:"kind,omitempty"`
	Pod  []byte `json:"pod"`
	Name []byte `json:"name"`
	ID   []byte `json:"id,omitempty"`
}

func markOf(k Key) copyMark      { return copyMark{Pod: []byte(k.Pod), Name: []byte(k.Name)} }
func (m *copyMark) key() Key     { return Key{Pod: string(m.Pod), Name: string(m.Name)} }
func (m *copyMark) isZero() bool { return len(m.Pod) == 0 }

// row is where the rows go on; nil is the beginning.
func (m *copyMark) row() *Row {
	if m.isZero() {
		return nil
	}
	return &Row{Kind: m.Kind, Key: m.key(), ID: string(m.ID)}
}

const (
	copyRecords = "records"
	copyRows    = "rows"
	copyChanges = "changes"
	copyVerify  = "verify"

	maxSkippedRecords = 10_000
	maxReportSkipped  = 1000
)

type copying struct {
	from, to PersistenceService
	im       Importer
	o        CopyOptions
	state    copyState
	revision uint64 // of the progress record
	through  uint64 // the source's position
	skipped  map[Key]bool
	lost     []Problem // the parts of the source that cannot be read
	judged   Key       // whose record was looked for last, and whether it is in one of these
	missing  bool
	report   CopyReport
}

func (c *copying) run(ctx context.Context) error {
	c.lost = lost(c.from)
	if len(c.lost) > 0 && !c.o.SkipUnreadable {
		return c.skip(c.lost[0])
	}
	if err := c.begin(ctx); err != nil {
		return err
	}
	stages := []struct {
		name string
		run  func(context.Context) error
	}{{copyRecords, c.records}, {copyRows, c.rows}, {copyChanges, c.changes}, {copyVerify, c.verify}}
	reached := false
	for _, s := range stages {
		if s.name == c.state.Doing {
			reached = true
		}
		if !reached {
			continue
		}
		if c.state.Doing != s.name {
			c.state.Doing = s.name
			if err := c.note(ctx); err != nil {
				return err
			}
		}
		if err := s.run(ctx); err != nil {
			return err
		}
	}
	if !reached {
		return fmt.Errorf("the destination's copy is at %q, which this program does not know", c.state.Doing)
	}
	return c.end(ctx)
}

// begin finds out whether to begin or to go on.
func (c *copying) begin(ctx context.Context) error {
	switch unfinished, err := CopyUnfinished(ctx, c.from); {
	case err != nil:
		return fmt.Errorf("look at the source: %w", err)
	case unfinished && !c.inLost(ctx, copyKey()):
		return errors.New("the source is a copy that was not finished: go on with that one first")
	}
	var err error
	if c.through, err = c.from.Position(ctx); err != nil {
		return fmt.Errorf("read the source's position: %w", err)
	}
	source, err := c.fingerprint(ctx)
	if err != nil {
		return fmt.Errorf("look at the source: %w", err)
	}
	r, err := c.to.Load(ctx, copyKey())
	switch {
	case errors.Is(err, ErrNotFound):
		if err := c.empty(ctx); err != nil {
			return err
		}
		c.state = copyState{Source: source, Doing: copyRecords}
		return c.note(ctx)
	case err != nil:
		return fmt.Errorf("read how far the destination's copy is: %w", err)
	}
	if err := json.Unmarshal(r.State, &c.state); err != nil {
		return fmt.Errorf("read how far the destination's copy is: %w: %w", snapshot.ErrCorrupt, err)
	}
	if c.state.Source != source {
		return fmt.Errorf("%w: it holds a part of another source, or of this one before it changed; begin with an empty one", ErrNotEmpty)
	}
	for i := range c.state.Skipped {
		c.skipped[c.state.Skipped[i].key()] = true
	}
	c.revision, c.report.Resumed = r.Revision, true
	return nil
}

// fingerprint tells sources apart, and states of one source.
func (c *copying) fingerprint(ctx context.Context) (string, error) {
	h := sha256.New()
	put(h, c.through)
	pods, err := c.from.Pods(ctx)
	if err != nil {
		return "", err
	}
	d := digest{h: h}
	for i, pod := range pods {
		put(h, pod)
		if i >= 16 {
			continue
		}
		page, err := c.from.List(ctx, pod, ListOptions{Limit: 1})
		if err != nil {
			return "", err
		}
		for _, it := range page.Items {
			put(h, it.Name)
			d.record(Key{pod, it.Name}, &it.Record)
		}
	}
	changes, err := c.from.Log(ctx, 0, 4)
	if err != nil {
		return "", err
	}
	for i := range changes {
		d.change(&changes[i])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// empty refuses a destination that has anything.
func (c *copying) empty(ctx context.Context) error {
	pods, err := c.to.Pods(ctx)
	if err != nil {
		return fmt.Errorf("look at the destination: %w", err)
	}
	changes, err := c.to.Log(ctx, 0, 1)
	if err != nil {
		return fmt.Errorf("look at the destination: %w", err)
	}
	rows, err := c.to.Rows(ctx, "", nil, 1)
	if err != nil {
		return fmt.Errorf("look at the destination: %w", err)
	}
	if len(pods)+len(changes)+len(rows) > 0 {
		return fmt.Errorf("%w: it has %d pods", ErrNotEmpty, len(pods))
	}
	return nil
}

// note saves how far the copy is. Everything up to there is durable already.
func (c *copying) note(ctx context.Context) error {
	state, err := json.Marshal(c.state)
	if err != nil {
		return err
	}
	c.revision++
	err = c.im.Import(ctx, Batch{Records: []Stored{{Key: copyKey(), Record: snapshot.Record{
		Life: 1, Revision: c.revision, Reserved: c.revision, Codec: "json", State: state,
	}}}})
	if err != nil {
		return fmt.Errorf("note how far the copy is: %w", err)
	}
	return nil
}

// put imports a batch, notes that, and tells.
func (c *copying) put(ctx context.Context, b Batch) error {
	if err := c.im.Import(ctx, b); err != nil {
		return fmt.Errorf("write to the destination: %w", err)
	}
	if err := c.note(ctx); err != nil {
		return err
	}
	c.tell(c.state.Counts)
	return nil
}

func (c *copying) tell(n CopyCounts) {
	if c.o.Progress != nil {
		c.o.Progress(CopyProgress{Doing: c.state.Doing, Counts: n, Position: c.state.Position, Through: c.through})
	}
}

// skip notes what cannot be read, or says that the copy ends by it.
func (c *copying) skip(p Problem) error {
	if !c.o.SkipUnreadable {
		return fmt.Errorf("%s; skip what cannot be read, or repair it first: %w", Problem{Kind: p.Kind, Key: p.Key, Position: p.Position, Row: p.Row, Err: errSkipped}, p.Err)
	}
	c.left(p)
	if p.Kind != UnreadableRecord && p.Kind != NewerRecord {
		return nil
	}
	if len(c.state.Skipped) >= maxSkippedRecords {
		return fmt.Errorf("more than %d records cannot be read, the last: %w", maxSkippedRecords, p.Err)
	}
	c.skipped[p.Key] = true
	c.state.Skipped = append(c.state.Skipped, markOf(p.Key))
	return nil
}

// leftOut says whether the record of a row was left out, and so the row is.
func (c *copying) leftOut(ctx context.Context, key Key) bool {
	return c.skipped[key] || c.inLost(ctx, key)
}

// inLost says whether a record would stand in a part that cannot be read.
func (c *copying) inLost(ctx context.Context, key Key) bool {
	if len(c.lost) == 0 {
		return false
	}
	if key != c.judged {
		_, err := c.from.Load(ctx, key)
		c.judged, c.missing = key, errors.Is(err, snapshot.ErrCorrupt)
	}
	return c.missing
}

var errSkipped = errors.New("it cannot be copied")

// left reports what was left out.
func (c *copying) left(p Problem) {
	c.report.SkippedCount++
	if len(c.report.Skipped) < maxReportSkipped {
		c.report.Skipped = append(c.report.Skipped, p)
	}
}

func recordProblem(key Key, err error) Problem {
	kind := UnreadableRecord
	if errors.Is(err, snapshot.ErrNewer) {
		kind = NewerRecord
	}
	return Problem{Kind: kind, Key: key, Err: err}
}

func rowProblem(r *Row) Problem {
	return Problem{Kind: UnreadableRow, Key: r.Key, Row: r.Kind + " " + r.ID, Err: r.Err}
}

func changeProblem(ch *Change) Problem {
	return Problem{Kind: UnreadableChange, Key: ch.Key, Position: ch.Position, Err: ch.Err}
}

func (c *copying) records(ctx context.Context) error {
	return walkPods(ctx, c.from, c.state.Record.key(), func(pod string, items []Item) error {
		var b Batch
		for i := range items {
			key := Key{Pod: pod, Name: items[i].Name}
			if items[i].Err != nil {
				if err := c.skip(recordProblem(key, items[i].Err)); err != nil {
					return err
				}
				continue
			}
			b.Records = append(b.Records, Stored{Key: key, Record: items[i].Record})
		}
		c.state.Record = markOf(Key{Pod: pod, Name: items[len(items)-1].Name})
		c.state.Counts.Records += len(b.Records)
		return c.put(ctx, b)
	})
}

func (c *copying) rows(ctx context.Context) error {
	return walkRows(ctx, c.from, c.state.Row.row(), func(rows []Row) error {
		var b Batch
		for i := range rows {
			r := &rows[i]
			switch {
			case r.Err != nil:
				if err := c.skip(rowProblem(r)); err != nil {
					return err
				}
			case !c.leftOut(ctx, r.Key):
				b.Rows = append(b.Rows, *r)
			}
		}
		last := rows[len(rows)-1]
		c.state.Row = markOf(last.Key)
		c.state.Row.Kind, c.state.Row.ID = last.Kind, []byte(last.ID)
		c.state.Counts.Rows += len(b.Rows)
		return c.put(ctx, b)
	})
}

func (c *copying) changes(ctx context.Context) error {
	err := walkLog(ctx, c.from, c.state.Position, func(changes []Change) error {
		var b Batch
		for i := range changes {
			if changes[i].Err != nil {
				if err := c.skip(changeProblem(&changes[i])); err != nil {
					return err
				}
				continue
			}
			b.Changes = append(b.Changes, changes[i])
		}
		c.state.Position = changes[len(changes)-1].Position
		c.state.Counts.Changes += len(b.Changes)
		return c.put(ctx, b)
	})
	if err != nil {
		return err
	}
	return c.put(ctx, Batch{Position: c.through})
}

// verify reads both stores and compares what they hold.
func (c *copying) verify(ctx context.Context) error {
	c.report.Skipped, c.report.SkippedCount = nil, 0 // all of them are met again
	for _, p := range c.lost {
		c.left(p)
	}
	want, wantCounts, err := c.sum(ctx, c.from, c.left)
	if err != nil {
		return fmt.Errorf("read the source again: %w", err)
	}
	got, counts, err := c.sum(ctx, c.to, nil)
	if err != nil {
		return fmt.Errorf("read the destination back: %w", err)
	}
	position, err := c.to.Position(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read the destination's position: %w", err)
	case got != want || counts != wantCounts || counts != c.state.Counts:
		return fmt.Errorf("%w: it has %d records, %d rows and %d changes (digest %s), the source %d, %d and %d (digest %s), copied were %d, %d and %d",
			ErrNotCopied, counts.Records, counts.Rows, counts.Changes, got, wantCounts.Records, wantCounts.Rows, wantCounts.Changes, want,
			c.state.Counts.Records, c.state.Counts.Rows, c.state.Counts.Changes)
	case position < c.through:
		return fmt.Errorf("%w: its position is %d, the source's %d", ErrNotCopied, position, c.through)
	}
	c.report.Counts, c.report.Digest = counts, got
	return nil
}

// sum is the digest of all that a store holds. What cannot be read goes to
// skip; without that it is an error.
func (c *copying) sum(ctx context.Context, s PersistenceService, skip func(Problem)) (string, CopyCounts, error) {
	sum := &summing{c: c, leftOut: func(key Key) bool { return c.leftOut(ctx, key) }, skip: skip, d: digest{h: sha256.New()}}
	err := walkPods(ctx, s, Key{}, sum.records)
	if err == nil {
		err = walkRows(ctx, s, nil, sum.rows)
	}
	if err == nil {
		err = walkLog(ctx, s, 0, sum.changes)
	}
	return hex.EncodeToString(sum.d.h.Sum(nil)), sum.n, err
}

// end removes the note.
func (c *copying) end(ctx context.Context) error {
	outcomes, err := c.to.Commit(ctx, []Unit{{Key: copyKey(), Delete: true, Force: true}})
	if err == nil && len(outcomes) == 1 {
		err = outcomes[0].Err
	}
	if err != nil {
		return fmt.Errorf("everything is copied, but the note %s could not be removed; copy again to do that: %w", copyKey(), err)
	}
	return nil
}
