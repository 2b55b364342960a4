package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/twinsrv/twinsrv/actor/patterns"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/pod"
)

// ImportedLine says what became of one line of an import. The last one says how
// many there were.
type ImportedLine struct {
	// Line counts the lines of the body from 1, empty ones included.
	Line   int    `json:"line,omitempty"`
	Pod    string `json:"pod,omitempty"`
	Name   string `json:"name,omitempty"`
	Status int    `json:"status,omitempty" doc:"what the answer would have been to a PUT of the state, or of the pod"`
	ETag   string `json:"etag,omitempty"`
	Code   Code   `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`

	End    bool `json:"end,omitempty"`
	Lines  int  `json:"lines,omitempty"`
	Failed int  `json:"failed,omitempty"`
}

const (
	// importWindow is how many lines may be on their way to their entities.
	importWindow = 128
	// importPatience is how long the client may take to send the next part of
	// the body.
	importPatience = time.Minute
)

// imported is a line whose result is there, or will come.
type imported struct {
	result ImportedLine
	answer *patterns.Future // nil: the result is there
}

// postImport writes the state of a document for each line, and declares pods
// that are missing. Results are sent in the order of the lines while the body is
// still being read; memory holds a window of lines, whatever the body's size.
func postImport(c *call) error {
	if err := c.bodyOf(linesType); err != nil {
		return err
	}
	w := &lineWriter{call: c, control: http.NewResponseController(c.w)}
	_ = w.control.EnableFullDuplex() // HTTP/2 needs no leave
	w.begin()
	ctx, cancel := c.streaming()
	defer cancel()
	lines := make(chan imported, importWindow)
	told := make(chan struct{})
	go func() {
		defer close(told)
		defer cancel()
		c.tellImported(ctx, w, lines)
	}()
	err := c.readLines(ctx, w, lines)
	close(lines)
	<-told
	if err != nil || w.failed != nil {
		panic(http.ErrAbortHandler) // so that the client sees no end
	}
	return nil
}

// readLines hands on what becomes of each line. An error says that the body did
// not come to its end.
func (c *call) readLines(ctx context.Context, w *lineWriter, to chan<- imported) error {
	defer context.AfterFunc(ctx, func() { _ = w.control.SetReadDeadline(time.Now()) })()
	in := lineReader{in: bufio.NewReaderSize(c.r.Body, 64<<10), most: int(c.api.cfg.MaxLine)}
	for n := 1; ; n++ {
		_ = w.control.SetReadDeadline(time.Now().Add(importPatience))
		if ctx.Err() != nil { // looked at behind the deadline, which would else replace the one that ends the reading
			return ctx.Err()
		}
		line, err := in.next()
		if err != nil && !errors.Is(err, errLongLine) {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err == nil && len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var i imported
		if err != nil {
			i.fail(refuse(CodeBodyTooLarge, err.Error()))
		} else {
			i = c.importLine(ctx, line)
		}
		if i.result.Line = n; i.result.End {
			continue
		}
		select {
		case to <- i:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tellImported sends the results, and cancels all if the client does not take
// them.
func (c *call) tellImported(ctx context.Context, w *lineWriter, lines <-chan imported) {
	end := ImportedLine{End: true}
	for i := range lines {
		if i.answer != nil {
			v, err := i.answer.Wait(context.WithoutCancel(ctx)) // it ends, by its timeout at the latest
			i.settle(v, err)
		}
		end.Lines++
		if i.result.Status >= http.StatusBadRequest {
			end.Failed++
		}
		w.write(i.result)
		if (len(lines) == 0 || w.full()) && w.flush() != nil {
			return
		}
	}
	if ctx.Err() == nil {
		w.write(end)
		_ = w.flush()
	}
}

// importLine begins what a line asks for.
func (c *call) importLine(ctx context.Context, data []byte) (i imported) {
	var l Line
	if err := c.api.decode(data, &l); err != nil {
		i.fail(err)
		return i
	}
	i.result.Pod, i.result.Name, i.result.End = l.Pod, l.Name, l.End
	switch {
	case l.End:
	case l.Definition != nil:
		i.declare(ctx, c, l)
	case l.Quarantined != "":
		i.fail(refuse(CodeQuarantined, "the line has no state: the entity could not be read when it was exported"))
	default:
		if err := c.importEntity(ctx, l, &i); err != nil {
			i.fail(err)
		}
	}
	return i
}

func (c *call) importEntity(ctx context.Context, l Line, i *imported) error {
	p, err := c.podNamed(l.Pod)
	if err != nil {
		return err
	}
	if err := (target{entity: l.Name}).checkEntity(); err != nil {
		return err
	}
	if p.Definition().Type != entity.KindDocument {
		return refuse(CodeTypedState, "the entities of "+l.Pod+" change only by messages")
	}
	spec := p.Spec()
	if spec == nil {
		return readOnly(p)
	}
	m, err := spec.Replace(l.State)
	if err != nil {
		return err
	}
	i.answer, err = c.api.asks.Start(ctx, p.Ref(l.Name), m, maxTimeout)
	return err
}

// declare makes the pod of a line unless it is there. Lines behind it are for it,
// so it waits.
func (i *imported) declare(ctx context.Context, c *call, l Line) {
	if _, err := c.podNamed(l.Pod); err == nil {
		i.result.Status = http.StatusOK
		return
	} else if !errors.Is(err, pod.ErrNoPod) {
		i.fail(err)
		return
	}
	ctx, cancel := c.api.pods.System().WithTimeout(ctx, defaultTimeout)
	defer cancel()
	if _, _, _, err := c.api.pods.Declare(ctx, l.Pod, *l.Definition); err != nil {
		i.fail(err)
		return
	}
	i.result.Status = http.StatusCreated
}

func (i *imported) settle(v any, err error) {
	ack, ok := v.(entity.Ack)
	if err != nil || !ok {
		i.fail(err)
		return
	}
	i.result.Status, i.result.ETag = http.StatusOK, quoted(entity.ETag{Life: ack.Life, Revision: ack.Revision})
	if ack.Created {
		i.result.Status = http.StatusCreated
	}
}

func (i *imported) fail(err error) {
	f := failureOf(err)
	i.result.Status, i.result.Code, i.result.Detail = f.code.Status(), f.code, f.detail
}

var errLongLine = errors.New("the line is too long")

// lineReader reads lines up to a length, and passes over the rest of longer
// ones.
type lineReader struct {
	in   *bufio.Reader
	most int
	buf  []byte
}

// next returns the next line, without its end. It holds until the next call. It
// fails with errLongLine, after which the reader goes on, or for good.
func (r *lineReader) next() ([]byte, error) {
	r.buf = r.buf[:0]
	long := false
	for {
		part, err := r.in.ReadSlice('\n')
		if long = long || len(r.buf)+len(part) > r.most+1; !long {
			r.buf = append(r.buf, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && (len(r.buf) > 0 || long), err == nil:
			if long {
				return nil, errLongLine
			}
			return bytes.TrimSuffix(r.buf, []byte("\n")), nil
		default:
			return nil, err
		}
	}
}
