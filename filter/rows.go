package filter

// Rows are entities of one pod of which the values at a filter's paths are known
// already, a column for each path. Nothing in them may change while a subject
// has them.
type Rows struct {
	Pod   string
	Names []string
	// Columns are in the order of Filter.Paths, and may be more than those. Each
	// has a value for each name.
	Columns [][]Value
}

// ResetRow turns the subject to one of the rows. It serves then for Match of the
// filter whose paths the columns are, and for the paths pod and name.
func (s *Subject) ResetRow(rows *Rows, n int) {
	s.pod, s.rows = rows.Pod, rows
	s.toRow(n)
}

func (s *Subject) toRow(n int) { s.row, s.name = n, s.rows.Names[n] }
