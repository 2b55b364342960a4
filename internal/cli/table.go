package cli

import (
	"io"
	"os"
	"strings"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

// table prints lines in columns. It looks at so many lines before it decides how
// wide these are; later ones that need more make them wider.
type table struct {
	out    io.Writer
	width  int // of a terminal, at which lines are cut; 0 cuts none
	heads  []string
	widths []int
	lines  [][]string // not printed yet
	headed bool
}

// tableAhead is how many lines a table looks at before it prints them.
const tableAhead = 200

func newTable(out io.Writer, width int, heads ...string) *table {
	t := &table{out: out, width: width, heads: heads}
	t.measure(heads)
	return t
}

func (t *table) measure(cells []string) {
	for i, c := range cells {
		if i == len(t.widths) { // it has no heads
			t.widths = append(t.widths, 0)
		}
		t.widths[i] = max(t.widths[i], uniseg.StringWidth(c))
	}
}

// add adds a line, with a cell for each head if it has heads.
func (t *table) add(cells ...string) error {
	line := make([]string, len(cells))
	for i, c := range cells {
		line[i] = Printable(c)
	}
	t.measure(line)
	t.lines = append(t.lines, line)
	if len(t.lines) < tableAhead {
		return nil
	}
	return t.flush()
}

// flush prints what has been added, below the heads.
func (t *table) flush() error {
	lines := t.lines
	if !t.headed && len(t.heads) > 0 {
		lines = append([][]string{t.heads}, lines...)
	}
	t.headed, t.lines = true, nil
	for _, l := range lines {
		if _, err := io.WriteString(t.out, t.text(l)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func (t *table) text(cells []string) string {
	var b strings.Builder
	for i, c := range cells {
		b.WriteString(c)
		if i < len(cells)-1 {
			b.WriteString(strings.Repeat(" ", max(t.widths[i]-uniseg.StringWidth(c), 0)+2))
		}
	}
	line := strings.TrimRight(b.String(), " ")
	if t.width > 0 {
		line = cut(line, t.width)
	}
	return line
}

// cut shortens a text to so many columns of a terminal.
func cut(s string, width int) string {
	if uniseg.StringWidth(s) <= width {
		return s
	}
	var b strings.Builder
	used := 0
	for rest, state := s, -1; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used+w > width-1 {
			break
		}
		used += w
		b.WriteString(cluster)
	}
	return b.String() + "…"
}

// terminalWidth is how many columns a terminal has; 0 where there is none.
func terminalWidth(f *os.File) int {
	if !isTerminal(f) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 20 {
		return 80
	}
	return width
}
