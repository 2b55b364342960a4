package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// screen shows one thing after another at the same place of a terminal.
type screen struct {
	out   *os.File
	drawn bool
}

// draw shows what write writes, as much of it as there is room for.
func (s *screen) draw(write func(io.Writer) error) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	var b bytes.Buffer
	if !s.drawn {
		b.WriteString("\x1b[2J")
		s.drawn = true
	}
	b.WriteString("\x1b[H")
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil {
		width, height = 80, 24
	}
	left := height - 1
	for line := range bytes.Lines(text.Bytes()) {
		if left--; left < 0 {
			break
		}
		b.WriteString(cut(string(bytes.TrimSuffix(line, []byte("\n"))), width))
		b.WriteString("\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	_, err = s.out.Write(b.Bytes())
	return err
}

// print prints a sample for people.
func (s *sample) print(w io.Writer, server string) error {
	var b bytes.Buffer
	f := s.Server
	fmt.Fprintf(&b, "%s   %.2f changes/s   %d in %.1f s\n", server, s.ChangesPerSecond, s.Changes, s.Seconds)
	if s.Missed {
		fmt.Fprintln(&b, "changes were missed: the connection was lost, or the history has a gap")
	}
	store := "takes writes"
	if !f.StoreUp {
		store = "takes no writes"
	}
	fmt.Fprintf(&b, "asks %.2f/s, %d waiting   commits %.2f/s of %.2f ms, %d changes queued   store %s\n",
		f.AsksPerSecond, f.Waiting, f.CommitsPerSecond, f.CommitMillis, f.Queued, store)
	fmt.Fprintf(&b, "entities in memory %d   messages waiting %d   watchers %d   dead letters %d\n\n", f.Active, f.Mailbox, f.Watchers, f.DeadLetters)
	t := newTable(&b, 0, "POD", "CHANGES/S", "CHANGES")
	for _, p := range s.Pods {
		if err := t.add(p.Pod, fmt.Sprintf("%.2f", p.ChangesPerSecond), fmt.Sprint(p.Changes)); err != nil {
			return err
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	b.WriteByte('\n')
	t = newTable(&b, 0, "ENTITY", "CHANGES/S", "CHANGES", "LAST MESSAGE")
	for _, e := range s.Entities {
		if err := t.add(e.Pod+"/"+e.Name, fmt.Sprintf("%.2f", e.ChangesPerSecond), fmt.Sprint(e.Changes), e.Type); err != nil {
			return err
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}
