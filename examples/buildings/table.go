package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
)

// table reads a CSV file whose first line names the columns.
type table struct {
	name   string // of the file, for errors
	rows   *csv.Reader
	header []string
}

// newTable reads the first line. Lines may end in LF, CR LF or CR alone.
func newTable(name string, r io.Reader) (*table, error) {
	t := &table{name: name, rows: csv.NewReader(&newlines{r: bufio.NewReader(r)})}
	var err error
	if t.header, err = t.rows.Read(); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty; the first line must name the columns")
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// columns finds columns by their names. Of columns with the same name it is the
// first.
func (t *table) columns(names ...string) ([]int, error) {
	at := make([]int, len(names))
	for i, name := range names {
		if at[i] = slices.Index(t.header, name); at[i] < 0 {
			return nil, fmt.Errorf("%s: the first line does not name a column %q", t.name, name)
		}
	}
	return at, nil
}

// each calls f with every line behind the first until it fails. The error names
// the file and the line.
func (t *table) each(f func(row []string) error) error {
	for {
		row, err := t.rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err) // it has the line
		}
		if err := f(row); err != nil {
			line, _ := t.rows.FieldPos(0)
			return fmt.Errorf("%s: line %d: %w", t.name, line, err)
		}
	}
}

// newlines turns each CR that no LF follows into an LF, and passes everything
// else on.
type newlines struct {
	r *bufio.Reader
}

func (n *newlines) Read(p []byte) (int, error) {
	m, err := n.r.Read(p)
	for i, c := range p[:m] {
		if c == '\r' && !n.lineFeedAt(p[:m], i+1) {
			p[i] = '\n'
		}
	}
	return m, err
}

// lineFeedAt reports whether the byte at i, which may not be read yet, is LF.
func (n *newlines) lineFeedAt(p []byte, i int) bool {
	if i < len(p) {
		return p[i] == '\n'
	}
	next, err := n.r.Peek(1)
	return err == nil && next[0] == '\n'
}
