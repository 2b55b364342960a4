package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
)

// list prints things that come one after another, each when it comes or a little
// later, and keeps none of them. As json it is an object whose member "items" has
// them, as jsonl each is a line, as yaml an item of the list.
type list struct {
	out   *bufio.Writer
	form  form
	table *table
	count int
}

// list begins one, with the heads of its table. Away from a terminal it is
// printed as elsewhere says.
func (f OutputFlag) list(elsewhere form, heads ...string) *list {
	out := bufio.NewWriterSize(os.Stdout, 64<<10)
	l := &list{out: out, form: f.form(elsewhere)}
	if l.form == formTable {
		l.table = newTable(out, terminalWidth(os.Stdout), heads...)
	}
	return l
}

// add prints something; cells are what it has in a table.
func (l *list) add(v any, cells func() []string) error {
	l.count++
	switch l.form {
	case formTable:
		return l.table.add(cells()...)
	case formJSONL:
		return l.write(v, "", "")
	case formYAML:
		if l.count == 1 {
			l.print("items:\n")
		}
		text, err := encodeAs(formYAML, []any{v})
		if err == nil {
			_, err = l.out.Write(indented(text, "  "))
		}
		return err
	}
	if l.count == 1 {
		l.print("{\n  \"items\": [\n")
	} else {
		l.print(",\n")
	}
	text, err := encodeJSON(v)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "    ", "  "); err != nil {
		return err
	}
	l.print("    ")
	_, err = l.out.Write(b.Bytes())
	return err
}

// print writes a text; the error, if there is one, is that of the next write
// too.
func (l *list) print(s string) { _, _ = l.out.WriteString(s) }

func (l *list) write(v any, before, after string) error {
	text, err := encodeAs(formJSONL, v)
	if err != nil {
		return err
	}
	l.print(before)
	_, err = l.out.Write(text)
	l.print(after)
	return err
}

// flush prints what has come so far.
func (l *list) flush() error {
	if l.table != nil {
		if err := l.table.flush(); err != nil {
			return err
		}
	}
	return l.out.Flush()
}

// end ends the list. What is printed of one that is not ended is no JSON.
func (l *list) end() error {
	switch {
	case l.form == formJSON && l.count == 0:
		l.print("{\n  \"items\": []\n}\n")
	case l.form == formJSON:
		l.print("\n  ]\n}\n")
	case l.form == formYAML && l.count == 0:
		l.print("items: []\n")
	}
	return l.flush()
}

// endWith ends the list with something about all of it: more members of the
// object, or a last line. A table has it not.
func (l *list) endWith(v any) error {
	if l.form == formTable {
		return l.flush()
	}
	text, err := encodeAs(l.form, v)
	if err != nil {
		return err
	}
	switch {
	case l.form == formYAML && l.count == 0:
		l.print("items: []\n")
	case l.form == formJSON && l.count == 0:
		l.print("{\n  \"items\": [],")
		text = text[1:]
	case l.form == formJSON:
		l.print("\n  ],")
		text = text[1:]
	}
	l.print(string(text))
	return l.flush()
}

// indented puts something before each line.
func indented(text []byte, by string) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		b.WriteString(by)
		b.Write(line)
	}
	return b.Bytes()
}

// series prints values that each stand alone, one after another, at once.
type series struct {
	form  form
	table *table
	count int
}

// series begins one, with the heads of its table. Away from a terminal each value
// is a line of JSON.
func (f OutputFlag) series(heads ...string) *series {
	s := &series{form: f.form(formJSONL)}
	if s.form == formTable {
		s.table = newTable(os.Stdout, terminalWidth(os.Stdout), heads...)
	}
	return s
}

// add prints a value; cells are what it has in a table.
func (s *series) add(v any, cells func() []string) error {
	if s.table != nil {
		if err := s.table.add(cells()...); err != nil {
			return err
		}
		return s.table.flush()
	}
	text, err := encodeAs(s.form, v)
	if err != nil {
		return err
	}
	if s.count++; s.form == formYAML && s.count > 1 {
		text = append([]byte("---\n"), text...)
	}
	_, err = os.Stdout.Write(text)
	return err
}

// PrintTable prints lines of cells below their heads.
func PrintTable(w io.Writer, heads []string, lines [][]string) error {
	t := newTable(w, 0, heads...)
	for _, l := range lines {
		if err := t.add(l...); err != nil {
			return err
		}
	}
	return t.flush()
}
