package cli

import (
	"io"
	"iter"

	"github.com/twinsrv/twinsrv/client"
)

// exportFormat writes an export in some form.
type exportFormat interface {
	// line writes a pod or an entity.
	line(l client.Line) error
	// end says that it is whole.
	end(entities int) error
}

// importFormat reads what is to be imported from some form.
type importFormat interface {
	// records goes through what a file has. What cannot be understood is a record
	// with a fault, and stops no other; an error is the last that comes.
	records(in io.Reader) iter.Seq2[record, error]
}

// exportFormats are the formats by the names that the command takes.
func exportFormats(out io.Writer) map[string]exportFormat {
	return map[string]exportFormat{"ndjson": ndjsonExport{out}}
}

// importFormats are the formats by the names that the command takes.
func importFormats() map[string]importFormat {
	return map[string]importFormat{"ndjson": ndjsonImport{}}
}

// record is a pod or an entity of a file.
type record struct {
	number int // of its line, from 1
	line   client.Line
	fault  error // in place of the line
}
