package server

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"unicode"

	"golang.org/x/term"
)

// outputFlag says how a command prints what it found.
type outputFlag struct {
	Output string `short:"o" enum:"table,json,auto" default:"auto" placeholder:"table|json" help:"How to print it: table or json; left out, a table on a terminal and JSON elsewhere."`
}

func (f outputFlag) json() bool {
	return f.Output == "json" || f.Output == "auto" && !term.IsTerminal(int(os.Stdout.Fd()))
}

// printJSON prints a value for programs and people.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printTable prints lines of cells below their heads.
func printTable(w io.Writer, heads []string, lines [][]string) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, line := range append([][]string{heads}, lines...) {
		cells := make([]string, len(line))
		for i, c := range line {
			cells[i] = printable(c)
		}
		if _, err := fmt.Fprintln(t, strings.Join(cells, "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}

// printable is a text that can do nothing to a terminal: one with control
// characters is quoted.
func printable(s string) string {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return fmt.Sprintf("%q", s)
		}
	}
	return s
}
