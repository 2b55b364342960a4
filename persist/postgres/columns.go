package postgres

import (
	"time"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// A statement takes a group of values, one array a column. A group is closed at
// so many values or bytes.
const (
	groupValues = 1024
	groupBytes  = 16 << 20
)

// execution is one prepared statement with its arguments.
type execution struct {
	name string
	args []any
}

// groups cuts n values of these sizes into groups and calls fn for each.
func groups(n int, size func(i int) int, fn func(from, to int)) {
	for from := 0; from < n; {
		to, bytes := from, 0
		for to < n && to-from < groupValues && (to == from || bytes+size(to) <= groupBytes) {
			bytes += size(to)
			to++
		}
		fn(from, to)
		from = to
	}
}

func noSize(int) int { return 0 }

// column makes the array of one column.
func column[T, V any](values []T, of func(v *T) V) []V {
	out := make([]V, len(values))
	for i := range values {
		out[i] = of(&values[i])
	}
	return out
}

func podOf(e **entity) string  { return (*e).key.Pod }
func nameOf(e **entity) string { return (*e).key.Name }

// entityGroups executes a statement for entities that have nothing to write,
// with what was stored of them.
func entityGroups(out []execution, name string, all []*entity) []execution {
	groups(len(all), noSize, func(from, to int) {
		g := all[from:to]
		out = append(out, execution{name, []any{
			column(g, podOf), column(g, nameOf),
			column(g, func(e **entity) int64 { return int64((*e).was.life) }),
			column(g, func(e **entity) int64 { return int64((*e).was.revision) }),
		}})
	})
	return out
}

// recordGroups executes a statement for entities whose records are written.
func recordGroups(out []execution, name string, all []*entity, expected bool) []execution {
	groups(len(all), func(i int) int { return 2 * len(all[i].record.State) }, func(from, to int) {
		g := all[from:to]
		args := recordColumns(column(g, func(e **entity) persist.Stored {
			return persist.Stored{Key: (*e).key, Record: *(*e).record}
		}))
		if expected {
			args = append(args,
				column(g, func(e **entity) int64 { return int64((*e).was.life) }),
				column(g, func(e **entity) int64 { return int64((*e).was.revision) }))
		}
		out = append(out, execution{name, args})
	})
	return out
}

func recordColumns(g []persist.Stored) []any {
	return []any{
		column(g, func(s *persist.Stored) string { return s.Key.Pod }),
		column(g, func(s *persist.Stored) string { return s.Key.Name }),
		column(g, func(s *persist.Stored) int64 { return int64(s.Record.Life) }),
		column(g, func(s *persist.Stored) int64 { return int64(s.Record.Revision) }),
		column(g, func(s *persist.Stored) *time.Time { return derivedTime(s.Record.Changed) }),
		column(g, func(s *persist.Stored) int32 { return int32(len(s.Record.State)) }),
		column(g, func(s *persist.Stored) *string { return derivedState(&s.Record) }),
		column(g, func(s *persist.Stored) []byte { return envelope(&s.Record) }),
	}
}

func envelope(r *snapshot.Record) []byte {
	return r.Append(make([]byte, 0, 80+len(r.Codec)+len(r.State)))
}

func changeGroups(out []execution, name string, all []persist.Change) []execution {
	groups(len(all), func(i int) int { return len(all[i].Data) }, func(from, to int) {
		g := all[from:to]
		out = append(out, execution{name, []any{
			column(g, func(c *persist.Change) int64 { return int64(c.Position) }),
			column(g, func(c *persist.Change) string { return c.Key.Pod }),
			column(g, func(c *persist.Change) string { return c.Key.Name }),
			column(g, func(c *persist.Change) int64 { return int64(c.Life) }),
			column(g, func(c *persist.Change) int64 { return int64(c.Revision) }),
			column(g, func(c *persist.Change) bool { return c.Event }),
			column(g, func(c *persist.Change) *time.Time { return derivedTime(c.Time) }),
			column(g, func(c *persist.Change) *string { return derivedText(c.Type) }),
			column(g, sealChange),
		}})
	})
	return out
}

func rowGroups(out []execution, all []persist.Row) []execution {
	groups(len(all), func(i int) int { return len(all[i].Value) }, func(from, to int) {
		g := all[from:to]
		out = append(out, execution{putRowsStatement, append(rowKeys(g),
			column(g, rowSum),
			column(g, func(r *persist.Row) []byte { return notNil(r.Value) }))})
	})
	return out
}

func deletedRowGroups(out []execution, all []persist.Row) []execution {
	groups(len(all), noSize, func(from, to int) {
		out = append(out, execution{deleteRowsStatement, rowKeys(all[from:to])})
	})
	return out
}

func rowKeys(g []persist.Row) []any {
	return []any{
		column(g, func(r *persist.Row) string { return r.Kind }),
		column(g, func(r *persist.Row) string { return r.Key.Pod }),
		column(g, func(r *persist.Row) string { return r.Key.Name }),
		column(g, func(r *persist.Row) []byte { return []byte(r.ID) }),
	}
}

// notNil makes no bytes an empty value: nil would be NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
