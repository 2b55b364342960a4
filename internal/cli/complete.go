package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"
)

// completeCommand is what the scripts of the shells call. Of bash it gets the
// command line up to the cursor, and what of it bash replaces; of the others the
// words behind the program's name, the last being what is there of the one that
// is to be completed. It prints a candidate a line, with a tab and a text about
// it; :files says that files are candidates too.
type completeCommand struct {
	Words []string `arg:"" optional:""`
}

// Run prints candidates. What goes wrong leaves them out.
func (c *completeCommand) Run(ctx context.Context, k *kong.Context) error {
	if len(c.Words) < 2 {
		return nil
	}
	words, quoted := c.Words[1:], func(s string) (string, bool) { return s, true }
	if c.Words[0] == "bash" {
		if len(c.Words) != 3 {
			return nil
		}
		line := splitLine(c.Words[1])
		if len(line.words) < 2 {
			return nil
		}
		words, quoted = line.words[1:], func(s string) (string, bool) { return line.quote(s, c.Words[2]) }
	}
	p := newPlace(k.Model.Node, words)
	found := p.candidates(ctx)
	var out strings.Builder
	for _, f := range found {
		text, can := quoted(f.text)
		if !can || strings.ContainsFunc(f.text, unicode.IsControl) {
			continue
		}
		fmt.Fprintf(&out, "%s\t%s\n", text, f.about)
	}
	if p.files {
		out.WriteString(":files\n")
	}
	_, err := os.Stdout.WriteString(out.String())
	return err
}

// candidate is what may stand at the end of a command line.
type candidate struct{ text, about string }

// place is the place in a command line that is to be completed.
type place struct {
	node    *kong.Node
	flag    *kong.Flag // whose value it is; nil if it is none
	before  string     // what stands before that value in the word, such as --output=
	current string     // the word, or what there is of it
	only    bool       // -- was there: what follows are arguments
	args    []string   // of the command, so far
	given   map[string]string
	files   bool // files are candidates
}

// newPlace looks for the end of words, of which there is at least one.
func newPlace(root *kong.Node, words []string) *place {
	p := &place{node: root, current: words[len(words)-1], given: make(map[string]string)}
	for _, w := range words[:len(words)-1] {
		p.pass(w)
	}
	if name, value, assigned := strings.Cut(p.current, "="); p.flag == nil && assigned && !p.only {
		if f := p.long(name); f != nil {
			p.flag, p.before, p.current = f, name+"=", value
		}
	}
	return p
}

// pass passes over a word.
func (p *place) pass(word string) {
	switch {
	case p.flag != nil:
		p.given[p.flag.Name], p.flag = word, nil
	case p.only:
		p.args = append(p.args, word)
	case word == "--":
		p.only = true
	case strings.HasPrefix(word, "--"):
		name, value, assigned := strings.Cut(word, "=")
		f := p.long(name)
		switch {
		case f == nil || f.IsBool():
		case assigned:
			p.given[f.Name] = value
		default:
			p.flag = f
		}
	case strings.HasPrefix(word, "-") && word != "-":
		p.passShort(word[1:])
	case len(p.args) == 0 && child(p.node, word) != nil:
		p.node = child(p.node, word)
	default:
		p.args = append(p.args, word)
	}
}

// passShort passes over short flags, the last of which may want a value.
func (p *place) passShort(letters string) {
	for i, letter := range letters {
		f := p.find(func(f *kong.Flag) bool { return f.Short == letter })
		if f == nil {
			return
		}
		if !f.IsBool() {
			if i == len(letters)-1 {
				p.flag = f
			}
			return
		}
	}
}

func (p *place) long(word string) *kong.Flag {
	return p.find(func(f *kong.Flag) bool { return "--"+f.Name == word })
}

// find finds a flag of the command, or of those above it.
func (p *place) find(is func(*kong.Flag) bool) *kong.Flag {
	for _, f := range p.flags() {
		if is(f) {
			return f
		}
	}
	return nil
}

// flags are those that may stand here. Before any command they are also those of
// the command that stands for none.
func (p *place) flags() []*kong.Flag {
	var all []*kong.Flag
	for _, group := range p.node.AllFlags(true) {
		all = append(all, group...)
	}
	if d := p.node.DefaultCmd; d != nil {
		all = append(all, d.Flags...)
	}
	return all
}

// candidates are those that begin with the word.
func (p *place) candidates(ctx context.Context) []candidate {
	var all []candidate
	switch {
	case p.flag != nil:
		all = p.values(ctx, p.flag.Value)
	case strings.HasPrefix(p.current, "-") && !p.only:
		for _, f := range p.flags() {
			if f.Hidden || p.given[f.Name] != "" {
				continue
			}
			all = append(all, candidate{"--" + f.Name, f.Help})
		}
	case len(p.node.Children) > 0:
		for _, c := range p.node.Children {
			if !c.Hidden {
				all = append(all, candidate{c.Name, c.Help})
			}
		}
	default:
		if a := p.argument(); a != nil {
			all = p.values(ctx, a)
		}
	}
	all = slices.DeleteFunc(all, func(c candidate) bool { return !strings.HasPrefix(c.text, p.current) })
	for i := range all {
		all[i].text = p.before + all[i].text
	}
	return all
}

// argument is the one that stands here; nil if none may.
func (p *place) argument() *kong.Positional {
	list := p.node.Positional
	if n := len(p.args); n < len(list) {
		return list[n]
	}
	if n := len(list); n > 0 && list[n-1].IsCumulative() {
		return list[n-1]
	}
	return nil
}

// values are those that a flag or an argument may have.
func (p *place) values(ctx context.Context, v *kong.Value) []candidate {
	if v.Enum != "" {
		var all []candidate
		for _, e := range v.EnumSlice() {
			if e != "auto" { // it stands for leaving the flag out
				all = append(all, candidate{text: e})
			}
		}
		return all
	}
	switch v.Tag.Get("complete") {
	case "files":
		p.files = true
	case "pods":
		return p.pods(ctx)
	case "names":
		return p.names(ctx)
	case "messages":
		return p.messages(ctx)
	}
	return nil
}
