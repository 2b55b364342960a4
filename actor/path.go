package actor

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const maxName = 256 // bytes

// checkName refuses what cannot be a name: names are valid UTF-8 of 1 to 256
// bytes, but not ".", ".." and nothing with U+0000.
func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: a name must not be empty", ErrInvalid)
	case len(name) > maxName:
		return fmt.Errorf("%w: a name has at most %d bytes, this one %d", ErrInvalid, maxName, len(name))
	case name == "." || name == "..":
		return fmt.Errorf("%w: %q is no name", ErrInvalid, name)
	case strings.IndexByte(name, 0) >= 0:
		return fmt.Errorf("%w: the name %q has U+0000 in it", ErrInvalid, name)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: the name %q is not valid UTF-8", ErrInvalid, name)
	}
	return nil
}

func escape(name string) string {
	if !strings.ContainsAny(name, "%/*") {
		return name
	}
	return strings.NewReplacer("%", "%25", "/", "%2F", "*", "%2A").Replace(name)
}

func unescape(step string) string {
	if strings.IndexByte(step, '%') < 0 {
		return step
	}
	return strings.NewReplacer("%25", "%", "%2F", "/", "%2A", "*").Replace(step)
}

// Path returns the names from the root to the actor, as in /user/pods/rooms. A
// slash, a percent sign and an asterisk in a name are written %2F, %25 and %2A,
// so that a path leads to one actor.
func (r *Ref) Path() string {
	if r.parent == nil {
		return "/"
	}
	var names []string
	size := 0
	for a := r; a.parent != nil; a = a.parent {
		n := escape(a.Name())
		names = append(names, n)
		size += 1 + len(n)
	}
	var b strings.Builder
	b.Grow(size)
	for i := len(names) - 1; i >= 0; i-- {
		b.WriteByte('/')
		b.WriteString(names[i])
	}
	return b.String()
}

// Lookup returns the actor that a path leads to; it may be stopping. The error
// wraps ErrNotFound.
func (s *System) Lookup(path string) (*Ref, error) {
	at, rest := s.walk(path)
	if at == nil || len(rest) > 0 {
		return nil, fmt.Errorf("%s: %w", path, ErrNotFound)
	}
	return at, nil
}

// Send resolves a path and posts the message there. When only the last name
// of the path is absent, its parent's OnAbsent may take the message; otherwise
// it becomes a dead letter, which is no error.
func (s *System) Send(path string, m Message) error {
	at, rest := s.walk(path)
	if at != nil && len(rest) == 0 {
		return at.Post(m)
	}
	if at != nil && len(rest) == 1 && checkName(rest[0]) == nil && at.offer(rest[0], m) {
		return nil
	}
	s.deadLetter(path, m, ErrNotFound)
	return nil
}

// walk follows a path from the root as far as there are actors.
func (s *System) walk(path string) (at *Ref, rest []string) {
	trimmed, ok := strings.CutPrefix(path, "/")
	if !ok {
		return nil, nil
	}
	at = s.root
	if trimmed == "" {
		return at, nil
	}
	names := strings.Split(trimmed, "/")
	for i := range names {
		names[i] = unescape(names[i])
	}
	for i, n := range names {
		c, ok := at.Child(n)
		if !ok {
			return at, names[i:]
		}
		at = c
	}
	return at, nil
}
