package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"
)

// Line is one line of an export, and of an import: a pod with its definition, or
// an entity of it.
type Line struct {
	Pod string `json:"pod,omitempty"`
	// Definition stands in the line of a pod, which comes before its entities.
	Definition *Definition `json:"definition,omitempty"`

	Name     string          `json:"name,omitempty"`
	Life     uint64          `json:"life,omitempty"`
	Revision uint64          `json:"revision,omitempty"`
	Changed  time.Time       `json:"changed,omitzero"`
	State    json.RawMessage `json:"state,omitempty"`
	// Quarantined stands in place of the state of an entity that cannot be read.
	Quarantined string `json:"quarantined,omitempty"`
	// Cursor is where an export goes on behind this line.
	Cursor string `json:"cursor,omitempty"`
}

// Export goes through all entities of pods by pod and name, each as it is when it
// is read; no pods are all. It begins behind the line that a cursor is of, or at
// the beginning if that is empty. A connection that is lost is made again behind
// the last line. An error is the last that comes: without one it is whole.
func (c *Client) Export(ctx context.Context, cursor string, pods ...string) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		x := export{c: c, cursor: cursor, pods: pods}
		for try := 0; ; try++ {
			before := x.cursor
			done, err := x.read(ctx, yield)
			if done {
				return
			}
			if x.cursor != before {
				try = 0
			}
			var cause *lostError
			if !errors.As(err, &cause) || !c.pause(ctx, try, cause.cause) {
				if cause != nil {
					err = cause.cause
				}
				yield(Line{}, err)
				return
			}
		}
	}
}

type export struct {
	c      *Client
	cursor string
	pods   []string
}

// read hands on lines until the end, or until nobody wants more; then it is done.
// It fails with a *lostError when the rest may be had by another request.
func (x *export) read(ctx context.Context, yield func(Line, error) bool) (done bool, err error) {
	r := request{method: http.MethodGet, path: "/v1/export", repeats: always}
	if x.cursor != "" {
		r.ask("cursor", x.cursor)
	}
	if len(x.pods) > 0 {
		r.ask("pods", strings.Join(x.pods, ","))
	}
	resp, err := x.c.send(ctx, &r, nil)
	if err != nil {
		if r.again(err) {
			err = &lostError{err}
		}
		return false, err
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for {
		text, err := in.ReadBytes('\n')
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err != nil:
			return false, &lostError{fmt.Errorf("the export was cut off: %w", err)}
		}
		var l struct {
			Line
			End bool `json:"end"`
		}
		if err := json.Unmarshal(text, &l); err != nil {
			return false, fmt.Errorf("a line of the export: %w", err)
		}
		if l.End {
			return true, nil
		}
		if x.cursor = l.Cursor; !yield(l.Line, nil) {
			return true, nil
		}
	}
}

// Imported is what became of one line of an import.
type Imported struct {
	// Line is the number of the line, from 1. Through, if it is not 0, is that of
	// the last line that the result is of: those of lines that end alike may come
	// together, without their names and ETags, when they are taken more slowly than
	// the lines are given.
	Line, Through int

	Pod  string
	Name string // empty for the line of a pod
	// Status is what a PUT would have been answered with.
	Status int
	// ETag is that of the entity's revision.
	ETag string
	// Err is why the line failed, an *Error; else nil.
	Err error
}

// Import sends lines as an export gives them: it declares the pods that are
// missing, and creates or replaces documents. A pod that is there with another
// definition keeps it, and its line fails with PodExists. The results come in the order of
// the lines, while later ones are still being read; a line that fails stops no
// other. An error is the last that comes: then the lines without a result may or
// may not have been taken, and can be sent again, as can all others. The lines
// are asked for in a goroutine of their own, which has ended when the sequence
// has.
func (c *Client) Import(ctx context.Context, lines iter.Seq[Line]) iter.Seq2[Imported, error] {
	return func(yield func(Imported, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		body, to := io.Pipe()
		written := make(chan struct{})
		go func() {
			defer close(written)
			writeLines(to, lines)
		}()
		defer func() {
			_ = body.Close() // the writer, if it still waits, ends
			<-written
		}()
		r := request{method: http.MethodPost, path: "/v1/import", bodyType: linesType}
		resp, err := c.send(ctx, &r, body)
		if err != nil {
			yield(Imported{}, err)
			return
		}
		defer resp.Body.Close()
		defer cancel() // before Close, which would read the rest
		if err := readImported(resp.Body, yield); err != nil && !errors.Is(err, errEnough) {
			yield(Imported{}, r.lost(err))
		}
	}
}

// writeLines writes the lines, or as many of them as the request takes.
func writeLines(to *io.PipeWriter, lines iter.Seq[Line]) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	for l := range lines {
		if err := e.Encode(l); err != nil {
			_ = to.CloseWithError(fmt.Errorf("the line of %s/%s: %w", l.Pod, l.Name, err)) // ends the request with it
			return
		}
		if _, err := to.Write(buf.Bytes()); err != nil {
			return // the request has ended
		}
		buf.Reset()
	}
	_ = to.Close() // never fails
}

// readImported hands on results until the end. It fails with errEnough when
// nobody wants more.
func readImported(body io.Reader, yield func(Imported, error) bool) error {
	in := bufio.NewReader(body)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("the import was cut off: %w", err)
		}
		var l struct {
			Line    int    `json:"line"`
			Through int    `json:"through"`
			Pod     string `json:"pod"`
			Name    string `json:"name"`
			Status  int    `json:"status"`
			ETag    string `json:"etag"`
			Code    Code   `json:"code"`
			Detail  string `json:"detail"`
			End     bool   `json:"end"`
		}
		if err := json.Unmarshal(text, &l); err != nil {
			return fmt.Errorf("a result of the import: %w", err)
		}
		if l.End {
			return nil
		}
		i := Imported{Line: l.Line, Through: l.Through, Pod: l.Pod, Name: l.Name, Status: l.Status, ETag: l.ETag}
		if l.Code != "" {
			i.Err = &Error{Status: l.Status, Code: l.Code, Detail: l.Detail}
		}
		if !yield(i, nil) {
			return errEnough
		}
	}
}

// Backup writes everything that was acknowledged before, as of one moment, in the
// form of the server's kind of store. What was written is worth nothing unless
// the error is nil.
func (c *Client) Backup(ctx context.Context, to io.Writer) (int64, error) {
	r := request{method: http.MethodPost, path: "/v1/store/backup"}
	resp, err := c.send(ctx, &r, nil)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	n, err := io.Copy(to, resp.Body)
	if err != nil {
		return n, fmt.Errorf("the backup was cut off: %w", err)
	}
	return n, nil
}
