package persist

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

// The rows of a table are those of kind viewKind of the projection's entity. A
// row's ID is the entry's with viewEnd behind it: then no other row can stand
// between an entry's ID and its row, so that reading one row behind the ID finds
// the entry or shows that it is not there. The order stays that of the IDs.
const (
	viewKind = "view"
	viewEnd  = "\x01"

	viewRows  = 4096    // of a unit
	viewBytes = 4 << 20 // of a unit's rows
)

// Table is a projection's durable read model, as Apply writes it. What is put
// there becomes durable, and is seen by readers, together with the position of
// the changes that Apply was given. It belongs to the call.
type Table struct {
	r      *Running
	values map[string][]byte // nil: deleted
	order  []string          // the IDs in values, as they were first written
	size   int
	err    error // why the commit will be refused
}

// Put sets an entry. The ID is valid UTF-8 without U+0000, of 1 to 8,191 bytes;
// one that is not fails the call of Apply. The value is copied, and may have as
// many bytes as the store takes for a row.
func (t *Table) Put(id string, value []byte) {
	t.set(id, append([]byte{}, value...))
}

// Delete removes an entry, if it is there.
func (t *Table) Delete(id string) { t.set(id, nil) }

func (t *Table) set(id string, value []byte) {
	if err := checkEntry(id); err != nil {
		if t.err == nil {
			t.err = err
		}
		return
	}
	old, seen := t.values[id]
	if !seen {
		t.order = append(t.order, id)
		t.size += len(id)
	}
	t.size += len(value) - len(old)
	t.values[id] = value
}

func checkEntry(id string) error {
	if id == "" || len(id) > maxID-len(viewEnd) || strings.IndexByte(id, 0) >= 0 || strings.ToValidUTF8(id, "") != id {
		return invalid("the id %.40q of an entry of the table has %d bytes, want 1 to %d of valid UTF-8 without U+0000", id, len(id), maxID-len(viewEnd))
	}
	return nil
}

// Get returns an entry, as this call of Apply has it so far. The value is the
// caller's.
func (t *Table) Get(ctx context.Context, id string) (value []byte, found bool, err error) {
	if v, ok := t.values[id]; ok {
		return bytes.Clone(v), v != nil, nil
	}
	return t.r.Get(ctx, id)
}

func (t *Table) tooLarge() bool { return len(t.order) > viewRows || t.size > viewBytes }

func (t *Table) rows() []RowOp {
	rows := make([]RowOp, 0, len(t.order))
	for _, id := range t.order {
		v := t.values[id]
		rows = append(rows, RowOp{Kind: viewKind, ID: id + viewEnd, Value: v, Delete: v == nil})
	}
	return rows
}

// Entry is one of a table.
type Entry struct {
	ID    string
	Value []byte
}

// before is the row behind which that of an entry's ID is the first that there
// can be, and for "" the first of the table.
func (r *Running) before(id string) *Row {
	if id == "" {
		id = viewEnd
	}
	return &Row{Kind: viewKind, Key: r.key, ID: id}
}

// Get returns an entry of what is committed. It may be called also after Stop.
// The value is the caller's.
func (r *Running) Get(ctx context.Context, id string) (value []byte, found bool, err error) {
	if err := checkEntry(id); err != nil {
		return nil, false, err
	}
	rows, err := r.c.store.Rows(ctx, viewKind, r.before(id), 1)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("projection %q: read %q: %w", r.p.Name, id, err)
	case len(rows) == 0 || rows[0].Key != r.key || rows[0].ID != id+viewEnd:
		return nil, false, nil
	case rows[0].Err != nil:
		return nil, false, fmt.Errorf("projection %q: read %q: %w", r.p.Name, id, rows[0].Err)
	}
	return rows[0].Value, true, nil
}

// Scan returns entries of what is committed whose IDs begin with a prefix, in
// byte order, behind the ID after ("" starts at the first), at most limit; 0
// means 100. Each page is of one moment; commits may come between two pages.
func (r *Running) Scan(ctx context.Context, prefix, after string, limit int) ([]Entry, error) {
	if limit <= 0 {
		limit = 100
	}
	from := r.before(prefix)
	if after != "" && after >= prefix {
		from = r.before(after + viewEnd)
	}
	rows, err := r.c.store.Rows(ctx, viewKind, from, limit)
	if err != nil {
		return nil, fmt.Errorf("projection %q: read the table: %w", r.p.Name, err)
	}
	var out []Entry
	for i := range rows {
		id, whole := strings.CutSuffix(rows[i].ID, viewEnd)
		switch {
		case rows[i].Key != r.key || !whole || !strings.HasPrefix(id, prefix):
			return out, nil
		case rows[i].Err != nil:
			return nil, fmt.Errorf("projection %q: read %q: %w", r.p.Name, id, rows[i].Err)
		}
		out = append(out, Entry{ID: id, Value: rows[i].Value})
	}
	return out, nil
}
