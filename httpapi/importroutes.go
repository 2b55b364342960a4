package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twinsrv/twinsrv/actor/patterns"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/pod"
)

// ImportedLine says what became of one line of an import. The last one says how
// many there were.
type ImportedLine struct {
	// Line counts the lines of the body from 1, empty ones included.
	Line int `json:"line,omitempty"`
	// Through is the last line that this is of, if the client did not read the
	// results while it sent the lines: what ends alike is told together then, with
	// the detail of the first.
	Through int    `json:"through,omitempty"`
	Pod     string `json:"pod,omitempty"`
	Name    string `json:"name,omitempty"`
	Status  int    `json:"status,omitempty" doc:"what the answer would have been to a PUT of the state, or of the pod"`
	ETag    string `json:"etag,omitempty"`
	Code    Code   `json:"code,omitempty"`
	Detail  string `json:"detail,omitempty"`

	End    bool `json:"end,omitempty"`
	Lines  int  `json:"lines,omitempty"`
	Failed int  `json:"failed,omitempty"`
	Untold int  `json:"untold,omitempty" doc:"lines of no result above: there were too many that the client did not read"`
}

func (l *ImportedLine) failed() bool { return l.Status >= http.StatusBadRequest }

// alike reports whether a later line has ended as this one.
func (l *ImportedLine) alike(o ImportedLine) bool {
	return l.Status == o.Status && l.Code == o.Code && l.Pod == o.Pod
}

const (
	// importWindow is how many lines may be on their way to their entities, and
	// importMemory how many bytes of memory they may take.
	importWindow = 128
	importMemory = 64 << 20
	// importPatience is how long the client may take to send the next part of
	// the body.
	importPatience = time.Minute
)

// imported is a line whose result is there, or will come.
type imported struct {
	result ImportedLine
	answer *patterns.Future // nil: the result is there
	memory int              // that the line takes
}

// postImport writes the state of a document for each line, and declares pods
// that are missing. Results are sent in the order of the lines while the body is
// still being read, and the body is read on whether or not the client takes them;
// memory holds a window of lines and of results, whatever the body's size.
func postImport(c *call) error {
	if err := c.bodyOf(linesType); err != nil {
		return err
	}
	w := &lineWriter{call: c, control: http.NewResponseController(c.w), calm: true}
	_ = w.control.EnableFullDuplex() // HTTP/2 needs no leave
	w.begin()
	ctx, cancel := c.streaming()
	defer cancel()
	lines, window, results := make(chan imported, importWindow), newLineWindow(c.api.window), newImportResults()
	var told sync.WaitGroup
	told.Go(func() {
		settleImported(ctx, lines, window, results)
	})
	told.Go(func() {
		defer cancel()
		c.tellImported(ctx, w, results)
	})
	err := c.readLines(ctx, w, window, lines)
	if err != nil {
		results.breakOff()
	}
	close(lines)
	w.hurry(c.api.patience)
	told.Wait()
	if err != nil || w.failed != nil {
		panic(http.ErrAbortHandler) // so that the client sees no end
	}
	return nil
}

// readLines hands on what becomes of each line. An error says that the body did
// not come to its end.
func (c *call) readLines(ctx context.Context, w *lineWriter, window *lineWindow, to chan<- imported) error {
	defer context.AfterFunc(ctx, func() {
		_ = w.control.SetReadDeadline(time.Now())
		w.hurry(0)
	})()
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
		if err != nil {
			err = refuse(CodeBodyTooLarge, err.Error())
		} else {
			err = c.largeLine(line)
		}
		var i imported
		if err != nil {
			i.fail(err)
		} else {
			memory := lineMemory(line)
			if err := window.enter(ctx, memory); err != nil {
				return err
			}
			i = c.importLine(ctx, line)
			i.memory = memory
		}
		if i.result.Line = n; i.result.End {
			window.leave(i.memory)
			continue
		}
		select {
		case to <- i:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// settleImported waits for the results of the lines, in their order.
func settleImported(ctx context.Context, lines <-chan imported, window *lineWindow, to *importResults) {
	defer to.close()
	for i := range lines {
		if i.answer != nil {
			v, err := i.answer.Wait(context.WithoutCancel(ctx)) // it ends, by its timeout at the latest
			i.settle(v, err)
		}
		window.leave(i.memory)
		to.add(i.result)
	}
}

// tellImported sends the results, and their end if all could be had.
func (c *call) tellImported(ctx context.Context, w *lineWriter, results *importResults) {
	for {
		lines, ended, err := results.take(ctx)
		if err != nil || ended && ctx.Err() != nil {
			return
		}
		for _, l := range lines {
			w.write(l)
			if w.full() && w.flush() != nil {
				return
			}
		}
		if w.flush() != nil || ended {
			return
		}
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
	switch ofEntity := l.Name != "" || l.State != nil || l.Quarantined != ""; {
	case l.End && (ofEntity || l.Definition != nil || l.Pod != ""):
		i.result.End = false
		i.fail(refuse(CodeMalformed, "the line of the end has something else, too: give each a line of its own"))
	case l.Definition != nil && ofEntity:
		i.fail(refuse(CodeMalformed, "the line has a definition and an entity: give each a line of its own"))
	case l.Quarantined != "" && l.State != nil:
		i.fail(refuse(CodeMalformed, "the line has a state and says that it could not be read"))
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
// so it waits. A pod that is there keeps the definition that it has.
func (i *imported) declare(ctx context.Context, c *call, l Line) {
	if p, err := c.podNamed(l.Pod); err == nil {
		if i.result.Status = http.StatusOK; l.Definition != nil {
			if err := keeps(p, *l.Definition); err != nil {
				i.fail(err)
			}
		}
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

// keeps says in what a pod differs from a definition, or nil.
func keeps(p *pod.Pod, def pod.Definition) error {
	is := p.Definition()
	if def.Type == entity.KindDocument && is.Type == entity.KindDocument {
		spec, err := entity.Document{Name: p.Name(), Create: entity.Creation{By: def.Create.By, Names: def.Create.Names}, Schema: def.Schema, Index: def.Index}.Spec()
		if err != nil {
			return err
		}
		create := spec.Creation()
		def.Create, def.Schema, def.Index = pod.CreateDefinition{By: create.By, Names: create.Names}, spec.Schema(), spec.Index()
		if def.Durability == "" {
			def.Durability = "sync"
		}
		if interval, async := strings.CutPrefix(def.Durability, "async:"); async {
			if d, err := time.ParseDuration(interval); err == nil {
				def.Durability = "async:" + d.String()
			}
		}
	}
	var differs []string
	for _, part := range []struct {
		name string
		same bool
	}{
		{"type", is.Type == def.Type},
		{"durability", is.Durability == def.Durability},
		{"create", slices.Equal(is.Create.By, def.Create.By) && is.Create.Names == def.Create.Names},
		{"schema", bytes.Equal(is.Schema, def.Schema)},
		{"index", slices.Equal(is.Index, def.Index)},
	} {
		if !part.same {
			differs = append(differs, part.name)
		}
	}
	if differs == nil {
		return nil
	}
	return refuse(CodePodExists, fmt.Sprintf("pod %s is there with another definition, which it keeps: %s differs; a PUT of the pod would change it", p.Name(), strings.Join(differs, " and ")))
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
