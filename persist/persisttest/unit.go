package persisttest

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/twinsrv/twinsrv/persist"
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", persist.ErrInvalid, fmt.Sprintf(format, args...))
}

// checkUnit says which units no store takes.
func checkUnit(u *persist.Unit) error {
	for _, s := range []string{u.Key.Pod, u.Key.Name} {
		if s == "" || len(s) > 1024 || strings.Contains(s, "\x00") {
			return invalid("a name is empty, longer than 1,024 bytes or holds U+0000")
		}
	}
	switch {
	case u.Delete && (u.Record != nil || len(u.Rows) > 0):
		return invalid("it deletes and has a record or rows")
	case u.Delete && u.Expect == 0 && !u.Force, u.Force && !u.Delete:
		return invalid("it deletes without an expected revision, or forces what is no deletion")
	case !u.Delete && u.Record == nil && (u.Expect == 0 || len(u.Changes) > 0):
		return invalid("it has no record")
	case u.Record != nil && (u.Record.Revision == 0 || u.Record.Revision < u.Expect):
		return invalid("its record's revision is 0 or below the expected one")
	case u.Record != nil && len(u.Record.State) > maxValue:
		return invalid("its state has more than %d bytes", maxValue)
	}
	last := u.Expect
	for _, c := range u.Changes {
		if !u.Force && c.Revision <= last || u.Record != nil && c.Revision > u.Record.Revision {
			return invalid("a change's revision is out of order or above the record's")
		}
		if len(c.Data) > maxValue {
			return invalid("a change has more than %d bytes", maxValue)
		}
		last = c.Revision
	}
	kind := regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	for _, r := range u.Rows {
		if !kind.MatchString(r.Kind) || r.ID == "" || strings.Contains(r.ID, "\x00") || len(r.Value) > maxValue {
			return invalid("a row's kind, ID or size is not allowed")
		}
	}
	return nil
}
