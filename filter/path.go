package filter

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/twinsrv/twinsrv/snapshot"
)

// root is the member of the envelope at which a path starts.
type root uint8

const (
	rootPod root = iota
	rootName
	rootLife
	rootRevision
	rootChanged
	rootState
)

// rootNames is in the order of the envelope.
func rootNames() [6]string {
	return [...]string{"pod", "name", "life", "revision", "changed", "state"}
}

func rootOf(name string) (root, bool) {
	for i, n := range rootNames() {
		if n == name {
			return root(i), true
		}
	}
	return 0, false
}

// Path leads to one value of an entity: pod, name, life, revision, changed, or
// into the state. It is immutable and safe for concurrent use. The zero Path is
// pod.
type Path struct {
	root  root
	steps []step
}

const (
	maxPath  = 1024 // bytes of a path's text
	maxSteps = 64
	maxIndex = 1<<31 - 1
)

// ParsePath parses a path as expressions write it: name, state.floor, state.x[0]
// or state["odd name"], with the escapes of JSON between the quotes. It has at
// most 1,024 bytes and 64 steps. The error is a *SyntaxError.
func ParsePath(text string) (Path, error) {
	if len(text) > maxPath {
		return Path{}, errorAt(text, 0, "path has %d bytes: at most %d are allowed", len(text), maxPath)
	}
	if !utf8.ValidString(text) {
		return Path{}, errorAt("", 0, "path is not valid UTF-8")
	}
	p := pathParser{text: text}
	word := p.word()
	r, ok := rootOf(word)
	if !ok {
		return Path{}, errorAt(text, 0, "a path starts with pod, name, life, revision, changed or state")
	}
	path := Path{root: r}
	for p.pos < len(text) {
		if r != rootState {
			return Path{}, errorAt(text, p.pos, "%s has nothing inside it", word)
		}
		if len(path.steps) == maxSteps {
			return Path{}, errorAt(text, p.pos, "path has more than %d steps", maxSteps)
		}
		s, err := p.step()
		if err != nil {
			return Path{}, err
		}
		path.steps = append(path.steps, s)
	}
	return path, nil
}

type pathParser struct {
	text string
	pos  int
}

func wordByte(c byte, first bool) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || !first && c >= '0' && c <= '9'
}

// word takes a name, empty if none stands here.
func (p *pathParser) word() string {
	start := p.pos
	for p.pos < len(p.text) && wordByte(p.text[p.pos], p.pos == start) {
		p.pos++
	}
	return p.text[start:p.pos]
}

func (p *pathParser) step() (step, error) {
	start := p.pos
	p.pos++
	switch p.text[start] {
	case '.':
		if w := p.word(); w != "" {
			return keyStep(w), nil
		}
		return step{}, errorAt(p.text, p.pos, "a name should stand behind the dot; names with other signs are written as [\"…\"]")
	case '[':
		return p.bracket()
	}
	return step{}, errorAt(p.text, start, "'.' or '[' should stand here")
}

func (p *pathParser) bracket() (step, error) {
	start := p.pos
	var s step
	if strings.HasPrefix(p.text[start:], `"`) {
		end := jsonSkipText([]byte(p.text), start)
		if end < 0 {
			return step{}, errorAt(p.text, start, "the quoted name does not end")
		}
		tree, err := snapshot.ParseJSON([]byte(p.text[start:end]))
		name, ok := tree.(string)
		if err != nil || !ok {
			return step{}, errorAt(p.text, start, "the quoted name is no JSON text")
		}
		s = keyStep(name)
		p.pos = end
	} else {
		for p.pos < len(p.text) && p.text[p.pos] >= '0' && p.text[p.pos] <= '9' {
			p.pos++
		}
		n, err := strconv.Atoi(p.text[start:p.pos])
		if err != nil || n > maxIndex {
			return step{}, errorAt(p.text, start, "an index from 0 or a quoted name should stand here")
		}
		s = step{index: n}
	}
	if !strings.HasPrefix(p.text[p.pos:], "]") {
		return step{}, errorAt(p.text, p.pos, "']' should stand here")
	}
	p.pos++
	return s, nil
}

// String writes the path in the form that ParsePath takes; equal paths have
// equal texts.
func (p Path) String() string {
	var b strings.Builder
	b.WriteString(rootNames()[p.root])
	for i := range p.steps {
		s := &p.steps[i]
		switch {
		case s.quoted == "":
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case isWord(s.name):
			b.WriteString("." + s.name)
		default:
			b.WriteString("[" + s.quoted + "]")
		}
	}
	return b.String()
}

func isWord(s string) bool {
	p := pathParser{text: s}
	return s != "" && p.word() == s
}

// Value returns what stands at the path; ok is false if nothing does. Lists and
// objects come as their JSON. The value may share memory with the state: Clone
// those that are kept.
func (p Path) Value(s *Subject) (v Value, ok bool) {
	v, pos := p.lookup(s)
	switch v.form {
	case formMissing:
		return Value{}, false
	case formList, formMap:
		text := s.state.json(pos)
		if text == nil {
			return Value{}, false
		}
		return Value{form: formOther, text: view(text)}, true
	}
	return v, true
}

// lookup returns the value at the path and, inside a state, its position. Lists
// and objects are named and left unread.
func (p *Path) lookup(s *Subject) (v Value, pos int) {
	switch p.root {
	case rootState:
		pos = s.state.find(0, p.steps)
		return s.state.value(pos), pos
	case rootPod:
		return StringValue(s.pod), -1
	case rootName:
		return StringValue(s.name), -1
	case rootLife:
		return uintValue(s.record.Life), -1
	case rootRevision:
		return uintValue(s.record.Revision), -1
	}
	return TimeValue(s.record.Changed), -1
}
