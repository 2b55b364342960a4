package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/twinsrv/twinsrv/client"
)

// ndjsonExport writes a line of JSON for each.
type ndjsonExport struct{ out io.Writer }

func (f ndjsonExport) line(l client.Line) error { return f.write(l) }

func (f ndjsonExport) end(entities int) error {
	return f.write(struct {
		End      bool `json:"end"`
		Entities int  `json:"entities"`
	}{true, entities})
}

func (f ndjsonExport) write(v any) error {
	text, err := encodeAs(formJSONL, v)
	if err == nil {
		_, err = f.out.Write(text)
	}
	return err
}

// ndjsonImport reads lines of JSON as an export has them.
type ndjsonImport struct{}

// maxLine is the longest line that is taken; servers take less.
const maxLine = 64 << 20

var errLongLine = fmt.Errorf("the line has more than %d bytes", maxLine)

func (ndjsonImport) records(in io.Reader) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		lines := bufio.NewReaderSize(in, 64<<10)
		whole, exported := false, false
		if mark, _ := lines.Peek(3); string(mark) == "\ufeff" { // as editors on Windows write it
			_, _ = lines.Discard(3)
		}
		for n := 1; ; n++ {
			text, err := nextLine(lines)
			if err != nil && !errors.Is(err, errLongLine) && !errors.Is(err, io.EOF) {
				yield(record{}, err)
				return
			}
			if errors.Is(err, io.EOF) && len(text) == 0 {
				break
			}
			r := record{number: n, fault: err}
			if !errors.Is(err, errLongLine) {
				if len(bytes.TrimSpace(text)) == 0 {
					continue
				}
				var end bool
				r.line, end, r.fault = ndjsonLine(text)
				if whole = whole || end; end {
					continue
				}
				exported = exported || r.line.Cursor != ""
			}
			if !yield(r, nil) {
				return
			}
		}
		if exported && !whole {
			note("the file has no last line with the member end: it is a part of an export")
		}
	}
}

// ndjsonLine understands a line. end says that it is the last one of an export.
// A member that no export has is a mistake of somebody's, and not left out.
func ndjsonLine(text []byte) (l client.Line, end bool, err error) {
	var x struct {
		client.Line
		End      bool `json:"end"`
		Entities int  `json:"entities"`
		Skipped  int  `json:"skipped"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err = d.Decode(&x)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more behind its JSON")
		}
	}
	if err != nil {
		return client.Line{}, false, fmt.Errorf("the line is not as an export has them: %w", err)
	}
	entity := x.Pod != "" || x.Name != "" || x.Definition != nil || x.State != nil
	return x.Line, x.End && !entity, nil
}

// nextLine returns the next line without its end; the last one may have none. It
// fails with errLongLine, after which the next line is read, or for good.
func nextLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLongLine
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		}
		return bytes.TrimSuffix(line, []byte("\n")), err
	}
}
