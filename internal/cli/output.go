package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/term"
)

// OutputFlag says how a command prints what it found.
type OutputFlag struct {
	Output string `short:"o" enum:"table,json,yaml,jsonl,auto" default:"auto" placeholder:"FORM" help:"How to print it: table, json, yaml or jsonl (a line of JSON each); left out, a table on a terminal and JSON elsewhere."`
}

// form is how something is printed.
type form string

const (
	formTable form = "table"
	formJSON  form = "json"
	formYAML  form = "yaml"
	formJSONL form = "jsonl"
)

// form is the one that is wanted; elsewhere is that away from a terminal.
func (f OutputFlag) form(elsewhere form) form {
	switch {
	case f.Output != "auto" && f.Output != "":
		return form(f.Output)
	case isTerminal(os.Stdout):
		return formTable
	}
	return elsewhere
}

// Table reports whether people are to read the output of a command that prints
// one value.
func (f OutputFlag) Table() bool { return f.form(formJSON) == formTable }

// Print prints a value in one of the forms for programs, or has table print it
// for people.
func (f OutputFlag) Print(v any, table func(w io.Writer) error) error {
	if f.Table() {
		return table(os.Stdout)
	}
	text, err := encodeAs(f.form(formJSON), v)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// encodeAs encodes a value in a form for programs, with an end of line.
func encodeAs(f form, v any) ([]byte, error) {
	text, err := encodeJSON(v)
	switch {
	case err != nil:
		return nil, err
	case f == formYAML:
		return toYAML(text)
	case f == formJSON:
		var b bytes.Buffer
		if err := json.Indent(&b, text, "", "  "); err != nil {
			return nil, err
		}
		text = b.Bytes()
	}
	return append(text, '\n'), nil
}

// encodeJSON encodes a value on one line, numbers as they are written, with
// nothing that could do something to a terminal.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return escapeJSON(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// PrintJSON prints a value for programs and people.
func PrintJSON(w io.Writer, v any) error {
	text, err := encodeAs(formJSON, v)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// note tells people something beside the output.
func note(format string, args ...any) {
	fmt.Fprintf(os.Stderr, filepath.Base(os.Args[0])+": "+format+"\n", args...)
}
