package persist

import (
	"fmt"
	"strings"
)

const (
	maxPod  = 256
	maxName = 1024
	maxID   = 8192
)

// invalid is a refusal of a unit for its data.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// Check says, with an error that wraps ErrInvalid, why no store may take the
// key, or returns nil.
func (k Key) Check() error {
	switch {
	case k.Pod == "" || len(k.Pod) > maxPod:
		return invalid("the pod's name has %d bytes, want 1 to %d", len(k.Pod), maxPod)
	case k.Name == "" || len(k.Name) > maxName:
		return invalid("the name has %d bytes, want 1 to %d", len(k.Name), maxName)
	case strings.IndexByte(k.Pod, 0) >= 0 || strings.IndexByte(k.Name, 0) >= 0:
		return invalid("a name holds U+0000")
	}
	return nil
}

// Check says, with an error that wraps ErrInvalid, why no store may take the
// unit, or returns nil. No state, change or row may have more than maxValue
// bytes. Every store calls it before it looks at what it holds.
//
// A pod's name has 1 to 256 bytes, an entity's 1 to 1,024, and neither holds
// U+0000. A unit deletes or has a record, or only rows of an entity that
// exists; the revisions of its changes rise from above the expected one to at
// most the record's.
func (u *Unit) Check(maxValue int) error {
	if err := u.Key.Check(); err != nil {
		return err
	}
	if err := u.checkShape(); err != nil {
		return err
	}
	if u.Record != nil && len(u.Record.State) > maxValue {
		return invalid("the record has %d bytes, at most %d are kept", len(u.Record.State), maxValue)
	}
	for i := range u.Changes {
		if n := len(u.Changes[i].Data); n > maxValue {
			return invalid("change %d has %d bytes, at most %d are kept", i, n, maxValue)
		}
	}
	for i := range u.Rows {
		if n := len(u.Rows[i].Value); n > maxValue {
			return invalid("row %d has %d bytes, at most %d are kept", i, n, maxValue)
		}
		if err := u.Rows[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// checkShape tests that a unit's parts go together.
func (u *Unit) checkShape() error {
	switch {
	case u.Delete && u.Record != nil:
		return invalid("it deletes and has a record")
	case u.Delete && len(u.Rows) > 0:
		return invalid("it deletes and has rows, which would have no entity")
	case u.Delete && u.Expect == 0 && !u.Force:
		return invalid("it deletes without the revision that it expects")
	case u.Force && !u.Delete:
		return invalid("force is for deletions alone")
	case u.Expect == 0 && !u.Delete && u.Record == nil:
		return invalid("it creates without a record")
	case u.Record == nil && !u.Delete && len(u.Changes) > 0:
		return invalid("it has changes but no record")
	case u.Record != nil && (u.Record.Revision == 0 || u.Record.Revision < u.Expect):
		return invalid("the record's revision %d is below the expected %d, or 0", u.Record.Revision, u.Expect)
	}
	last := u.Expect
	for i := range u.Changes {
		r := u.Changes[i].Revision
		if !u.Force && r <= last {
			return invalid("change %d has revision %d, want more than %d", i, r, last)
		}
		last = r
	}
	if u.Record != nil && last > u.Record.Revision {
		return invalid("a change has revision %d, the record only %d", last, u.Record.Revision)
	}
	return nil
}

func (r *RowOp) check() error {
	if r.Kind == "" || len(r.Kind) > 64 || r.Kind[0] < 'a' || r.Kind[0] > 'z' {
		return invalid("the kind of row %q is not of the form [a-z][a-z0-9-]*", r.Kind)
	}
	for _, c := range []byte(r.Kind) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return invalid("the kind of row %q is not of the form [a-z][a-z0-9-]*", r.Kind)
		}
	}
	if r.ID == "" || len(r.ID) > maxID || strings.IndexByte(r.ID, 0) >= 0 {
		return invalid("the id of a row of kind %q has %d bytes or holds U+0000, want 1 to %d without", r.Kind, len(r.ID), maxID)
	}
	return nil
}
