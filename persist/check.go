package persist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/snapshot"
)

// ProblemKind is what can be wrong with a part of a store.
type ProblemKind string

// The kinds of problems that Check finds.
const (
	// UnreadableRecord, UnreadableChange and UnreadableRow are damaged.
	UnreadableRecord ProblemKind = "unreadable record"
	UnreadableChange ProblemKind = "unreadable change"
	UnreadableRow    ProblemKind = "unreadable row"
	// NewerRecord was written by a newer version than this program.
	NewerRecord ProblemKind = "newer record"
	// LostPart is a part of a store that cannot be read, and of which it is not
	// known what it has; see Lossy.
	LostPart ProblemKind = "unreadable part"
	// OrphanedRow is a row of an entity that has no record.
	OrphanedRow ProblemKind = "orphaned row"
	// OrphanedRecord is a record of a pod that has no definition.
	OrphanedRecord ProblemKind = "orphaned record"
	// JournalInconsistent is a change that cannot be where it is: its position
	// or its revision does not rise, a revision before it is missing, or the
	// entity's record is older than it.
	JournalInconsistent ProblemKind = "inconsistent journal"
	// PositionReused is a life or a change with a position that the store may
	// give again.
	PositionReused ProblemKind = "position beyond the store's"
)

// Problem is something that is wrong with a part of a store.
type Problem struct {
	Kind ProblemKind
	// Key is whose part it is, as far as that can be told.
	Key Key
	// Position is that of a change; 0 for the others.
	Position uint64
	// Row is a row's kind and ID; empty for the others.
	Row string
	// Err says what is wrong.
	Err error
}

// String is one line that says it all.
func (p Problem) String() string {
	s := string(p.Kind) + ": " + p.Key.String()
	if p.Row != "" {
		s += " " + p.Row
	}
	if p.Position > 0 {
		s += fmt.Sprintf(" at position %d", p.Position)
	}
	return s + ": " + p.Err.Error()
}

// lost lists the parts of a store that cannot be read.
func lost(s PersistenceService) []Problem {
	if l, ok := s.(Lossy); ok {
		return l.Lost()
	}
	return nil
}

// PodCount is what a pod has.
type PodCount struct {
	Pod                    string
	Records, Rows, Changes int
	// Bytes are those of states, rows' values and changes' data.
	Bytes int64
}

// Report is what Check has found.
type Report struct {
	// Pods are those that have something, in byte order, with what can be read
	// and what cannot. Changes of deleted entities count for their pods.
	Pods []PodCount
	// Position is the store's, and Trimmed that through which retention may
	// have dropped changes.
	Position, Trimmed uint64
	// Problems are the first ones that were found, and Counts how many there
	// are of each kind.
	Problems []Problem
	Counts   map[ProblemKind]int
}

// OK says that nothing is wrong.
func (r *Report) OK() bool { return len(r.Counts) == 0 }

// CheckOptions tunes Check. The zero value works.
type CheckOptions struct {
	// Pods are those that need no definition, beside the store's own (whose
	// names begin with $): those of persistent actors.
	Pods []string
	// MaxProblems is how many problems a report lists. 0 means 1,000.
	MaxProblems int
	// Progress, if set, is called after each page with how many records, rows
	// and changes were read so far.
	Progress func(CheckProgress)
}

// CheckProgress is how far Check is.
type CheckProgress struct {
	// Doing is "records", "rows" or "changes", in this order.
	Doing                  string
	Records, Rows, Changes int
	// Position is that of the last change that was read, and Through the last
	// that there is to read.
	Position, Through uint64
}

// Check reads everything in a store, changes nothing, and reports what is wrong
// with it. Its error says that it could not read to the end. Nobody needs to
// stop writing meanwhile.
//
// It keeps about a hundred bytes in memory for each entity.
//
// What it takes for granted: pods are defined by the records of the pod "$pods";
// a change of an entity that has no record is history; between two changes of a
// life revisions may be missing where the first is in the part that was trimmed,
// and in pods whose durability is async.
func Check(ctx context.Context, s PersistenceService, o CheckOptions) (Report, error) {
	if o.MaxProblems <= 0 {
		o.MaxProblems = 1000
	}
	c := &check{store: s, o: o, pods: map[string]*PodCount{}, defs: map[string]bool{}, entities: map[uint64]seenEntity{}}
	c.report.Counts = map[ProblemKind]int{}
	for _, p := range lost(s) {
		c.problem(p)
	}
	err := c.run(ctx)
	for _, p := range c.pods {
		c.report.Pods = append(c.report.Pods, *p)
	}
	slices.SortFunc(c.report.Pods, func(a, b PodCount) int { return strings.Compare(a.Pod, b.Pod) })
	if err != nil {
		return c.report, fmt.Errorf("check the store: %w", err)
	}
	return c.report, nil
}

const definitionsPod = "$pods"

var errUnordered = errors.New("not in order")

type check struct {
	store    PersistenceService
	o        CheckOptions
	report   Report
	pods     map[string]*PodCount
	defs     map[string]bool // the defined pods, and whether revisions may be missing there
	entities map[uint64]seenEntity
	progress CheckProgress
	damaged  uint64 // the position of the last change that could not be read
	youngest seenLife
}

// seenLife is the highest life of a record.
type seenLife struct {
	key  Key
	life uint64
}

// seenEntity is what was seen of an entity so far.
type seenEntity struct {
	life, revision             uint64 // the record's; 0: none, or unreadable
	lastLife, lastRev, lastPos uint64 // the last change's
	exists                     bool
}

func entityHash(k Key) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(k.Pod))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(k.Name))
	return h.Sum64()
}

func (c *check) problem(p Problem) {
	c.report.Counts[p.Kind]++
	if len(c.report.Problems) < c.o.MaxProblems {
		c.report.Problems = append(c.report.Problems, p)
	}
}

func (c *check) pod(name string) *PodCount {
	p := c.pods[name]
	if p == nil {
		p = &PodCount{Pod: name}
		c.pods[name] = p
	}
	return p
}

func (c *check) tell(doing string) {
	c.progress.Doing = doing
	if c.o.Progress != nil {
		c.o.Progress(c.progress)
	}
}

func (c *check) run(ctx context.Context) error {
	// What was committed by now has its record in the listing, or is deleted.
	before, err := c.store.Position(ctx)
	if err != nil {
		return fmt.Errorf("read the position: %w", err)
	}
	c.progress.Through = before
	if err := c.readMark(ctx); err != nil {
		return err
	}
	if err := c.readDefinitions(ctx); err != nil {
		return err
	}
	if err := walkPods(ctx, c.store, Key{}, c.records); err != nil {
		return err
	}
	if err := walkRows(ctx, c.store, nil, func(rows []Row) error { return c.rows(ctx, rows) }); err != nil {
		return err
	}
	err = walkLog(ctx, c.store, 0, func(changes []Change) error { c.changes(changes, before); return nil })
	if errors.Is(err, errUnordered) {
		c.problem(Problem{Kind: JournalInconsistent, Position: c.progress.Position, Err: err})
		err = nil
	}
	if err != nil {
		return err
	}
	if c.report.Position, err = c.store.Position(ctx); err != nil {
		return fmt.Errorf("read the position: %w", err)
	}
	if y := c.youngest; y.life > c.report.Position {
		c.problem(Problem{Kind: PositionReused, Key: y.key, Err: fmt.Errorf("its life is %d, the store's position %d", y.life, c.report.Position)})
	}
	if last := c.progress.Position; last > c.report.Position {
		c.problem(Problem{Kind: PositionReused, Position: last, Err: fmt.Errorf("the store's position is %d", c.report.Position)})
	}
	return nil
}

func (c *check) readMark(ctx context.Context) error {
	r, err := c.store.Load(ctx, markKey())
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, snapshot.ErrCorrupt), errors.Is(err, snapshot.ErrNewer):
		return nil // the listing reports it
	case err != nil:
		return fmt.Errorf("read through where the journal was trimmed: %w", err)
	}
	var m markState
	if json.Unmarshal(r.State, &m) == nil {
		c.report.Trimmed = m.Through
	}
	return nil
}

func (c *check) readDefinitions(ctx context.Context) error {
	for _, pod := range c.o.Pods {
		c.defs[pod] = true
	}
	return walkPod(ctx, c.store, definitionsPod, "", func(items []Item) error {
		for i := range items {
			var def struct {
				Durability string `json:"durability"`
			}
			known := items[i].Err == nil && json.Unmarshal(items[i].Record.State, &def) == nil
			c.defs[items[i].Name] = !known || strings.HasPrefix(def.Durability, "async")
		}
		return nil
	})
}

// records checks a page of records.
func (c *check) records(pod string, items []Item) error {
	count := c.pod(pod)
	_, defined := c.defs[pod]
	for i := range items {
		it := &items[i]
		key := Key{Pod: pod, Name: it.Name}
		count.Records++
		count.Bytes += int64(len(it.Record.State))
		e := seenEntity{exists: true}
		switch {
		case errors.Is(it.Err, snapshot.ErrNewer):
			c.problem(Problem{Kind: NewerRecord, Key: key, Err: it.Err})
		case it.Err != nil:
			c.problem(Problem{Kind: UnreadableRecord, Key: key, Err: it.Err})
		default:
			e.life, e.revision = it.Record.Life, it.Record.Revision
			if e.life > c.youngest.life {
				c.youngest = seenLife{key, e.life}
			}
		}
		if !defined && !strings.HasPrefix(pod, "$") {
			c.problem(Problem{Kind: OrphanedRecord, Key: key, Err: fmt.Errorf("the pod %s has no definition", pod)})
		}
		c.entities[entityHash(key)] = e
	}
	c.progress.Records += len(items)
	c.tell("records")
	return nil
}

// rows checks a page of rows.
func (c *check) rows(ctx context.Context, rows []Row) error {
	for i := range rows {
		r := &rows[i]
		count := c.pod(r.Key.Pod)
		count.Rows++
		count.Bytes += int64(len(r.Value))
		name := r.Kind + " " + r.ID
		if r.Err != nil {
			c.problem(Problem{Kind: UnreadableRow, Key: r.Key, Row: name, Err: r.Err})
		}
		if !c.entities[entityHash(r.Key)].exists {
			orphan, err := c.isOrphan(ctx, r)
			if err != nil {
				return err
			}
			if orphan {
				c.problem(Problem{Kind: OrphanedRow, Key: r.Key, Row: name, Err: fmt.Errorf("its entity has no record")})
			}
		}
	}
	c.progress.Rows += len(rows)
	c.tell("rows")
	return nil
}

// isOrphan looks again at a row without a record: somebody may have made its
// entity since the records were read, or may have deleted it since the row was.
func (c *check) isOrphan(ctx context.Context, r *Row) (bool, error) {
	_, err := c.store.Load(ctx, r.Key)
	if !errors.Is(err, ErrNotFound) {
		if errors.Is(err, ErrUnavailable) {
			return false, fmt.Errorf("read %s: %w", r.Key, err)
		}
		return false, nil
	}
	now, err := c.store.RowsOf(ctx, r.Key)
	if err != nil {
		return false, fmt.Errorf("read the rows of %s: %w", r.Key, err)
	}
	return slices.ContainsFunc(now, func(o Row) bool { return o.Kind == r.Kind && o.ID == r.ID }), nil
}

// changes checks a page of changes. Those behind before are too new to be
// compared with the records that were read.
func (c *check) changes(changes []Change, before uint64) {
	for i := range changes {
		ch := &changes[i]
		if ch.Position <= c.progress.Position {
			c.problem(Problem{Kind: JournalInconsistent, Key: ch.Key, Position: ch.Position, Err: fmt.Errorf("it comes behind position %d", c.progress.Position)})
		}
		c.progress.Position = max(c.progress.Position, ch.Position)
		if ch.Err != nil {
			c.damaged = ch.Position
			c.problem(Problem{Kind: UnreadableChange, Key: ch.Key, Position: ch.Position, Err: ch.Err})
			continue
		}
		count := c.pod(ch.Key.Pod)
		count.Changes++
		count.Bytes += int64(len(ch.Data))
		if err := c.change(ch, before); err != nil {
			c.problem(Problem{Kind: JournalInconsistent, Key: ch.Key, Position: ch.Position, Err: err})
		}
	}
	c.progress.Changes += len(changes)
	c.tell("changes")
}

// change says what is wrong with a readable change.
func (c *check) change(ch *Change, before uint64) error {
	h := entityHash(ch.Key)
	e := c.entities[h]
	last := e
	e.lastLife, e.lastRev, e.lastPos = ch.Life, ch.Revision, ch.Position
	c.entities[h] = e
	switch {
	case ch.Life == 0 || ch.Life > ch.Position:
		return fmt.Errorf("it is of the life %d, which begins behind it", ch.Life)
	case ch.Life < last.lastLife:
		return fmt.Errorf("it is of the life %d, and there is an earlier change of the life %d", ch.Life, last.lastLife)
	case ch.Life == last.lastLife && ch.Revision <= last.lastRev:
		return fmt.Errorf("its revision is %d, that of the change before it %d", ch.Revision, last.lastRev)
	case ch.Position <= before && e.life > 0 && ch.Life > e.life:
		return fmt.Errorf("it is of the life %d, the record of the older life %d", ch.Life, e.life)
	case ch.Position <= before && e.life > 0 && ch.Life == e.life && ch.Revision > e.revision:
		return fmt.Errorf("its revision is %d, the record's only %d", ch.Revision, e.revision)
	}
	return c.missing(ch, last)
}

// missing says which revisions before a change are missing that should not be.
func (c *check) missing(ch *Change, last seenEntity) error {
	gaps, defined := c.defs[ch.Key.Pod]
	if gaps || !defined {
		return nil
	}
	from, known := uint64(0), ch.Life // known is where the part of the journal begins that must be whole
	if ch.Life == last.lastLife {
		from, known = last.lastRev, last.lastPos
	}
	if ch.Revision == from+1 || known <= c.report.Trimmed || known <= c.damaged {
		return nil // it was trimmed, or is the one that cannot be read
	}
	return fmt.Errorf("the revisions between %d and %d are missing", from, ch.Revision)
}
