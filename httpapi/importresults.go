package httpapi

import (
	"context"
	"sync"
)

const (
	// resultBytes is about how much memory the results of an import may take that
	// the client has not received. Behind it those of lines that end alike are told
	// together ...
	resultBytes = 1 << 20
	// ... and behind so many times of it others are only counted.
	resultTimes = 4
)

// importResults are the results of an import on their way to the client. Whoever
// adds one never waits for the client, who may send all lines before it reads:
// what memory has no room for is told in a shorter form. It is safe for
// concurrent use.
type importResults struct {
	mu     sync.Mutex
	lines  []ImportedLine
	bytes  int
	tail   int // the line that came last
	end    ImportedLine
	closed bool // there are no more
	broken bool // the body did not come to its end
	more   chan struct{}
}

func newImportResults() *importResults {
	return &importResults{end: ImportedLine{End: true}, more: make(chan struct{}, 1)}
}

// add adds the result of the next line.
func (r *importResults) add(l ImportedLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end.Lines++
	if l.failed() {
		r.end.Failed++
	}
	size := 100 + len(l.Pod) + len(l.Name) + len(l.Detail)
	switch last := len(r.lines) - 1; {
	case r.bytes < resultBytes || last < 0:
		r.lines = append(r.lines, l)
		r.bytes += size
	case r.lines[last].alike(l) && max(r.lines[last].Line, r.lines[last].Through) == r.tail:
		r.lines[last].Through = l.Line
		r.lines[last].Name, r.lines[last].ETag = "", ""
	case r.bytes < resultTimes*resultBytes:
		r.lines = append(r.lines, l)
		r.bytes += size
	default:
		r.end.Untold++
	}
	r.tail = l.Line
	r.wake()
}

// breakOff says that the body did not come to its end, so that there is none.
func (r *importResults) breakOff() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = true
}

// close says that there are no more results.
func (r *importResults) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.wake()
}

// wake tells whoever takes. mu is held.
func (r *importResults) wake() {
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// take returns the results that are there, waiting for some. Behind the last ones
// it returns the end alone, or nothing if the body has none. It fails with the
// context's error.
func (r *importResults) take(ctx context.Context) (lines []ImportedLine, ended bool, err error) {
	for {
		r.mu.Lock()
		lines, ended = r.lines, r.closed && len(r.lines) == 0
		if ended && !r.broken {
			lines = []ImportedLine{r.end}
		}
		r.lines, r.bytes = nil, 0
		r.mu.Unlock()
		if len(lines) > 0 || ended {
			return lines, ended, nil
		}
		select {
		case <-r.more:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

// lineWindow bounds the lines of an import that are on their way by the memory that
// they take. One alone may take more. One goroutine enters, and one leaves.
type lineWindow struct {
	most int

	mu    sync.Mutex
	used  int
	freed chan struct{}
}

func newLineWindow(most int) *lineWindow {
	return &lineWindow{most: most, freed: make(chan struct{}, 1)}
}

// enter waits until there is room for a line.
func (w *lineWindow) enter(ctx context.Context, size int) error {
	for !w.takes(size) {
		select {
		case <-w.freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (w *lineWindow) takes(size int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.used > 0 && w.used+size > w.most {
		return false
	}
	w.used += size
	return true
}

func (w *lineWindow) leave(size int) {
	w.mu.Lock()
	w.used -= size
	w.mu.Unlock()
	select {
	case w.freed <- struct{}{}:
	default:
	}
}
