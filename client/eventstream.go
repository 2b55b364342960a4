package client

import (
	"bufio"
	"errors"
	"io"
	"strings"
)

// serverEvent is one event of a stream of server-sent events.
type serverEvent struct {
	kind, data string
}

// eventReader reads a stream of server-sent events as the HTML standard has it,
// but for retry, which it passes over.
type eventReader struct {
	in     *bufio.Reader
	lastID string // of the events so far
	read   func() // called for every line
}

// next returns the next event that has data. An error is that of the stream.
func (r *eventReader) next() (serverEvent, error) {
	var e serverEvent
	var data []string
	id := r.lastID
	for {
		line, err := r.in.ReadString('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // what has no end is no event
			}
			return e, err
		}
		r.read()
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if line == "" {
			r.lastID = id
			if data == nil {
				e = serverEvent{}
				continue
			}
			e.data = strings.Join(data, "\n")
			return e, nil
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			e.kind = value
		case "data":
			data = append(data, value)
		case "id":
			if !strings.ContainsRune(value, 0) {
				id = value
			}
		}
	}
}
