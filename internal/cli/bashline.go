package cli

import "strings"

// bashLine is a command line of bash up to the cursor: its words without their
// quotes, and how the last one was written.
type bashLine struct {
	words []string
	raw   string // the last word as it was written
	open  byte   // the quote in which it ends; 0 for none
}

// splitLine splits a command line of bash as bash does, but for what it would
// replace. The last word is empty if the cursor stands behind a blank. Only what
// follows the last ;, | or & counts.
func splitLine(line string) bashLine {
	var b bashLine
	var word strings.Builder
	start := 0 // of the word
	end := func(next int) {
		b.words = append(b.words, word.String())
		word.Reset()
		start = next
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case b.open == '\'' && c != '\'', b.open == '"' && c != '"' && c != '\\':
			word.WriteByte(c)
		case c == '\\' && i+1 < len(line):
			i++
			if b.open == '"' && !strings.ContainsRune("\"\\$`", rune(line[i])) {
				word.WriteByte('\\')
			}
			word.WriteByte(line[i])
		case b.open != 0 && c == b.open:
			b.open = 0
		case c == '\'' || c == '"':
			b.open = c
		case c == ' ' || c == '\t' || c == '\n':
			if i > start {
				end(i + 1)
			}
			start = i + 1
		case c == ';' || c == '|' || c == '&':
			b.words = nil
			word.Reset()
			start = i + 1
		default:
			word.WriteByte(c)
		}
	}
	b.raw = line[start:]
	b.words = append(b.words, word.String())
	return b
}

// quote writes a candidate for the last word so that bash reads it as it is, and
// leaves out what bash keeps of what was written: it replaces its part alone,
// which begins behind a : or =. false says that it cannot be written so.
func (b *bashLine) quote(candidate, part string) (string, bool) {
	switch b.open {
	case '\'':
		return b.behind(candidate, b.words[len(b.words)-1], part), !strings.Contains(candidate, "'")
	case '"':
		candidate = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(candidate)
		return b.behind(candidate, strings.TrimPrefix(b.raw, `"`), part), !strings.Contains(candidate, "!") // history is replaced there
	}
	var q strings.Builder
	for i := range len(candidate) {
		if c := candidate[i]; strings.IndexByte(" \t\"'\\$`!*?[](){}<>;&|~#", c) >= 0 {
			q.WriteByte('\\')
		}
		q.WriteByte(candidate[i])
	}
	kept, is := strings.CutSuffix(b.raw, part)
	if !is {
		return q.String(), true
	}
	return strings.CutPrefix(q.String(), kept)
}

// behind leaves out what bash keeps in quotes: all that is before its part.
func (b *bashLine) behind(candidate, written, part string) string {
	kept := strings.TrimSuffix(written, part)
	return strings.TrimPrefix(candidate, kept)
}
