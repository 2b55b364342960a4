package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net"
	"os"
	"sync"
	"time"

	"github.com/twinsrv/twinsrv/client"
)

type importCommand struct {
	Format string `arg:"" enum:"ndjson" help:"The form of the file: ${enum}, lines of JSON as an export has them."`
	File   string `arg:"" complete:"files" help:"The file; - is the standard input."`
	Pod    string `placeholder:"POD" complete:"pods" help:"Put everything into this pod, whatever pod the lines name."`
	ServerFlags
	OutputFlag
}

// Help says more than the list of flags.
func (importCommand) Help() string {
	return "A line has a pod, a name and a state, or a pod and its definition. Pods that are missing are declared, and documents are created or replaced. " +
		"A line that fails stops no other: it is told with its number, and the command ends with 8. The same file can be imported again.\n\n" +
		Examples(
			"twinsrv import ndjson rooms.ndjson",
			"twinsrv import ndjson rooms.ndjson --pod rooms-copy",
			`echo '{"pod":"rooms","name":"hall","state":{"celsius":19}}' | twinsrv import ndjson -`,
			"twinsrv import ndjson rooms.ndjson -o jsonl > failures.jsonl",
		)
}

// fault is a line that failed, or several that failed alike.
type fault struct {
	Line    int         `json:"line"`
	Through int         `json:"through,omitempty"`
	Pod     string      `json:"pod,omitempty"`
	Name    string      `json:"name,omitempty"`
	Status  int         `json:"status,omitempty"`
	Code    client.Code `json:"code"`
	Detail  string      `json:"detail"`
}

// imported counts what an import had.
type imported struct {
	End    bool `json:"end"`
	Lines  int  `json:"lines"`
	Failed int  `json:"failed"`
}

// Run sends the lines.
func (c *importCommand) Run(ctx context.Context) error {
	in, size := os.Stdin, int64(0)
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return UsageError{err}
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			size = info.Size()
		}
		in = f
	}
	return c.stream(ctx, func(ctx context.Context, s *Session) error {
		i := &importing{command: c, out: c.list(formJSONL), bar: NewBar(os.Stderr, "bytes"), size: size}
		i.bar.Show(0, size)
		err := i.run(ctx, s, importFormats()[c.Format], in)
		i.bar.End()
		if err != nil {
			_ = i.out.flush() // what failed before stands
			return i.broken(s.Explain(ctx, err), err)
		}
		return i.end()
	})
}

// importing is an import on its way. Lines are read in a goroutine, while the
// results of earlier ones come.
type importing struct {
	command *importCommand
	size    int64 // of the file; 0 if it is not known

	mu      sync.Mutex
	out     *list
	bar     *Bar
	read    int64 // bytes
	done    imported
	numbers []numbering
	waiting []fault     // of lines that were not sent, until those before have results
	sent    int         // lines
	reading error       // why the rest of the file cannot be read
	told    error       // why something cannot be printed
	alarm   *time.Timer // runs out when no result comes any more; nil before the end of the input
	ended   func()      // is called at that end
}

// maxWaiting bounds the faults that wait for their turn.
const maxWaiting = 10_000

// numbering says that the line that was sent as the first one of these had a
// number in the file, and those behind it the next ones.
type numbering struct{ sent, number int }

func (i *importing) run(ctx context.Context, s *Session, format importFormat, in io.Reader) error {
	records, enough := ahead(format.records(&countingReader{in, i}))
	defer enough()
	lines := func(yield func(client.Line) bool) { i.send(records, yield) }
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	i.ended = func() {
		if i.command.File == "-" && s.timeout > 0 { // results are late from here on, and not before
			i.alarm = time.AfterFunc(s.timeout, func() { giveUp(context.DeadlineExceeded) })
		}
	}
	begin := func(ctx context.Context) iter.Seq2[client.Imported, error] { return s.Import(ctx, lines) }
	results := begin(ctx)
	if i.command.File != "-" { // whoever writes to a pipe may take his time
		results = patient(ctx, s, begin)
	}
	for r, err := range results {
		if err != nil {
			enough() // the import ends when its lines do
			if cause := context.Cause(ctx); errors.Is(cause, context.DeadlineExceeded) {
				err = cause
			}
			return err
		}
		i.result(r)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tellWaiting(math.MaxInt)
	return errors.Join(i.reading, i.told)
}

// ahead goes through records that a goroutine reads, until enough is called: a
// pipe to which nobody writes can be read for ever. The goroutine then ends with
// its next record, or with the program.
func ahead(records iter.Seq2[record, error]) (seq iter.Seq2[record, error], enough func()) {
	type item struct {
		r   record
		err error
	}
	items, stop := make(chan item), make(chan struct{})
	go func() {
		defer close(items)
		for r, err := range records {
			select {
			case items <- item{r, err}:
			case <-stop:
				return
			}
		}
	}()
	seq = func(yield func(record, error) bool) {
		for {
			select {
			case i, more := <-items:
				if !more || !yield(i.r, i.err) {
					return
				}
			case <-stop:
				return
			}
		}
	}
	return seq, sync.OnceFunc(func() { close(stop) })
}

// send hands on the lines of the file that can be understood.
func (i *importing) send(records iter.Seq2[record, error], yield func(client.Line) bool) {
	for r, err := range records {
		if err != nil {
			i.mu.Lock()
			i.reading = fmt.Errorf("read %s: %w", i.command.File, err)
			i.mu.Unlock()
			return
		}
		l := client.Line{Pod: r.line.Pod, Definition: r.line.Definition, Name: r.line.Name, State: r.line.State, Quarantined: r.line.Quarantined}
		if i.command.Pod != "" {
			l.Pod = i.command.Pod
		}
		if r.fault == nil && l.Pod == "" {
			r.fault = errors.New("the line names no pod; --pod names one for all lines")
		}
		if !i.note(r) {
			continue
		}
		if !yield(l) {
			return
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ended()
}

// note notes a line that is to be sent, or tells that it cannot be.
func (i *importing) note(r record) (send bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if r.fault != nil {
		i.done.Lines++
		i.waiting = append(i.waiting, fault{Line: r.number, Pod: r.line.Pod, Name: r.line.Name, Code: client.Malformed, Detail: r.fault.Error()})
		if len(i.waiting) > maxWaiting {
			i.tellWaiting(r.number)
		}
		return false
	}
	i.sent++
	if n := len(i.numbers); n == 0 || r.number-i.numbers[n-1].number != i.sent-i.numbers[n-1].sent {
		i.numbers = append(i.numbers, numbering{i.sent, r.number})
	}
	return true
}

// number is the number in the file of a line that was sent. Results come in
// order, so that earlier numberings are not needed again.
func (i *importing) number(sent int) int {
	for len(i.numbers) > 1 && i.numbers[1].sent <= sent {
		i.numbers = i.numbers[1:]
	}
	return i.numbers[0].number + sent - i.numbers[0].sent
}

// result notes what became of a line, or of several.
func (i *importing) result(r client.Imported) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.bar.Show(i.read, i.size)
	if i.alarm != nil {
		i.alarm.Reset(i.command.Timeout)
	}
	lines := max(r.Through, r.Line) - r.Line + 1
	i.done.Lines += lines
	number := i.number(r.Line)
	i.tellWaiting(number)
	var e *client.Error
	if !errors.As(r.Err, &e) {
		return
	}
	f := fault{Line: number, Pod: r.Pod, Name: r.Name, Status: r.Status, Code: e.Code, Detail: e.Detail}
	if lines > 1 {
		f.Through = i.number(r.Through)
	}
	i.tell(f, lines)
}

// tellWaiting prints the faults that wait and are of lines up to a number.
func (i *importing) tellWaiting(through int) {
	for len(i.waiting) > 0 && i.waiting[0].Line <= through {
		i.tell(i.waiting[0], 1)
		i.waiting = i.waiting[1:]
	}
}

// tell prints a fault.
func (i *importing) tell(f fault, lines int) {
	i.done.Failed += lines
	if i.out.form != formTable {
		i.told = errors.Join(i.told, i.out.add(f, nil))
		return
	}
	i.bar.End()
	where := fmt.Sprintf("%s:%d", Printable(i.command.File), f.Line)
	if f.Through > 0 {
		where = fmt.Sprintf("%s to %d", where, f.Through)
	}
	what := ""
	switch {
	case f.Pod != "" && f.Name != "":
		what = Printable(f.Pod+"/"+f.Name) + ": "
	case f.Pod+f.Name != "":
		what = Printable(f.Pod+f.Name) + ": "
	}
	note("%s: %s%s (%s)", where, what, Printable(f.Detail), f.Code)
}

// end prints how many lines there were.
func (i *importing) end() error {
	i.done.End = true
	if err := i.out.endWith(i.done); err != nil {
		return err
	}
	if i.out.form == formTable {
		fmt.Printf("%d of %d lines are imported\n", i.done.Lines-i.done.Failed, i.done.Lines)
	}
	if i.done.Failed > 0 {
		return &failure{code: ExitPartial, text: fmt.Sprintf("%d of %d lines failed; mend them, and import the file again", i.done.Failed, i.done.Lines)}
	}
	return nil
}

// broken says of an import that did not come to its end how far it came. What it
// failed with is told, unless that would say that nothing was done.
func (i *importing) broken(told, err error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return told // nothing was sent
	}
	note("%d lines have results, %d of them failed; those behind may or may not have been taken; the same file can be imported again", i.done.Lines, i.done.Failed)
	var answer *client.Error
	if ExitCode(told) == ExitUnavailable && (!errors.As(err, &answer) || answer.Status == 0) {
		return &failure{code: ExitUnknown, text: told.Error(), cause: told}
	}
	return told
}

// countingReader counts what is read.
type countingReader struct {
	in io.Reader
	i  *importing
}

func (r *countingReader) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	r.i.mu.Lock()
	defer r.i.mu.Unlock()
	r.i.read += int64(n)
	return n, err
}
