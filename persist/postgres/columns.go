package postgres

import (
	"time"

	"github.com/twinsrv/twinsrv/persist"
)

// A statement takes a group of values, one array a column. A group is closed at
// so many values or bytes.
const (
	groupValues = 1024
	groupBytes  = 16 << 20
)

// execution is one prepared statement, and what makes its parameters, in the
// server's binary form, when it is sent.
type execution struct {
	name       string
	parameters func() [][]byte
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

func entityKey(e **entity) persist.Key { return (*e).key }

// keyColumns are the first two of most statements.
func keyColumns[T any](values []T, of func(v *T) persist.Key) [][]byte {
	return [][]byte{
		texts(values, func(v *T) string { return of(v).Pod }),
		texts(values, func(v *T) string { return of(v).Name }),
	}
}

// wasColumns are what is assumed to be stored of entities.
func wasColumns(g []*entity) [][]byte {
	return [][]byte{
		integers(g, func(e **entity) int64 { return int64((*e).was.life) }),
		integers(g, func(e **entity) int64 { return int64((*e).was.revision) }),
	}
}

// entityGroups executes a statement for entities that have nothing to write,
// with what was stored of them.
func entityGroups(out []execution, name string, all []*entity) []execution {
	groups(len(all), noSize, func(from, to int) {
		g := all[from:to]
		out = append(out, execution{name, func() [][]byte { return append(keyColumns(g, entityKey), wasColumns(g)...) }})
	})
	return out
}

// clearGroups executes the statement that removes all rows of entities.
func clearGroups(out []execution, all []*entity) []execution {
	groups(len(all), noSize, func(from, to int) {
		out = append(out, execution{clearRowsStatement, func() [][]byte { return keyColumns(all[from:to], entityKey) }})
	})
	return out
}

// updateGroups executes a statement for entities whose records replace others.
func updateGroups(out []execution, name string, all []*entity) []execution {
	records := recordsOf(all)
	groups(len(all), recordSize(records), func(from, to int) {
		out = append(out, execution{name, func() [][]byte {
			return append(recordColumns(records[from:to]), wasColumns(all[from:to])...)
		}})
	})
	return out
}

// recordGroups executes a statement for records alone.
func recordGroups(out []execution, name string, records []persist.Stored) []execution {
	groups(len(records), recordSize(records), func(from, to int) {
		out = append(out, execution{name, func() [][]byte { return recordColumns(records[from:to]) }})
	})
	return out
}

func recordsOf(all []*entity) []persist.Stored {
	records := make([]persist.Stored, len(all))
	for i, e := range all {
		records[i] = persist.Stored{Key: e.key, Record: *e.record}
	}
	return records
}

func recordSize(records []persist.Stored) func(i int) int {
	return func(i int) int { return 2 * len(records[i].Record.State) }
}

func recordColumns(g []persist.Stored) [][]byte {
	return append(keyColumns(g, func(s *persist.Stored) persist.Key { return s.Key }),
		integers(g, func(s *persist.Stored) int64 { return int64(s.Record.Life) }),
		integers(g, func(s *persist.Stored) int64 { return int64(s.Record.Revision) }),
		derivedTimes(g, func(s *persist.Stored) time.Time { return s.Record.Changed }),
		smallIntegers(g, func(s *persist.Stored) int32 { return int32(len(s.Record.State)) }),
		arrayOf(typeText, g, func(dst []byte, s *persist.Stored) ([]byte, bool) { return appendDerived(dst, &s.Record) }),
		bytesOf(g, func(dst []byte, s *persist.Stored) []byte { return s.Record.Append(dst) }),
	)
}

func changeGroups(out []execution, name string, all []persist.Change) []execution {
	groups(len(all), func(i int) int { return len(all[i].Data) }, func(from, to int) {
		out = append(out, execution{name, func() [][]byte { return journalColumns(all[from:to]) }})
	})
	return out
}

func journalColumns(g []persist.Change) [][]byte {
	key := keyColumns(g, func(c *persist.Change) persist.Key { return c.Key })
	return [][]byte{
		integers(g, func(c *persist.Change) int64 { return int64(c.Position) }),
		key[0], key[1],
		integers(g, func(c *persist.Change) int64 { return int64(c.Life) }),
		integers(g, func(c *persist.Change) int64 { return int64(c.Revision) }),
		booleans(g, func(c *persist.Change) bool { return c.Event }),
		derivedTimes(g, func(c *persist.Change) time.Time { return c.Time }),
		derivedTexts(g, func(c *persist.Change) string { return c.Type }),
		bytesOf(g, sealChange),
	}
}

func rowGroups(out []execution, all []persist.Row) []execution {
	groups(len(all), func(i int) int { return len(all[i].Value) }, func(from, to int) {
		g := all[from:to]
		out = append(out, execution{putRowsStatement, func() [][]byte {
			return append(rowKeys(g),
				integers(g, rowSum),
				bytesOf(g, func(dst []byte, r *persist.Row) []byte { return append(dst, r.Value...) }))
		}})
	})
	return out
}

func deletedRowGroups(out []execution, all []persist.Row) []execution {
	groups(len(all), noSize, func(from, to int) {
		out = append(out, execution{deleteRowsStatement, func() [][]byte { return rowKeys(all[from:to]) }})
	})
	return out
}

func rowKeys(g []persist.Row) [][]byte {
	key := keyColumns(g, func(r *persist.Row) persist.Key { return r.Key })
	return [][]byte{
		texts(g, func(r *persist.Row) string { return r.Kind }), key[0], key[1],
		bytesOf(g, func(dst []byte, r *persist.Row) []byte { return append(dst, r.ID...) }),
	}
}
