package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// block is one fenced piece of code.
type block struct {
	file string
	line int // of the first line of code
	info string
	code string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.file, b.line) }

type link struct {
	line   int
	target string
}

type page struct {
	blocks []block
	links  []link
}

var (
	fence      = regexp.MustCompile("^( *)(```+|~~~+) *([^`]*)$")
	inlineLink = regexp.MustCompile(`\]\(([^)\s]+)(?: "[^"]*")?\)`)
	codeSpan   = regexp.MustCompile("`[^`]*`")
)

// parsePage finds the fenced blocks of a page, and the links outside them.
func parsePage(file, text string) page {
	var p page
	var open string // the fence that is open
	var indent string
	var b block
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, "\r")
		m := fence.FindStringSubmatch(line)
		switch {
		case open == "" && m != nil:
			indent, open = m[1], m[2]
			b = block{file: file, line: i + 2, info: strings.TrimSpace(m[3])}
		case open != "" && m != nil && m[3] == "" && strings.HasPrefix(m[2], open):
			open = ""
			p.blocks = append(p.blocks, b)
		case open != "":
			b.code += strings.TrimPrefix(line, indent) + "\n"
		default:
			for _, m := range inlineLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
				p.links = append(p.links, link{i + 1, m[1]})
			}
		}
	}
	if open != "" {
		p.blocks = append(p.blocks, b)
	}
	return p
}

// brokenLinks names the links to files that are not there. Addresses with a
// scheme and anchors within the page are not followed.
func brokenLinks(root, file string, links []link) []string {
	var faults []string
	for _, l := range links {
		u, err := url.Parse(l.target)
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s:%d: link %q is malformed: %v", file, l.line, l.target, err))
			continue
		}
		if u.Scheme != "" || u.Host != "" || u.Path == "" {
			continue
		}
		path := filepath.Join(filepath.Dir(file), filepath.FromSlash(u.Path))
		if strings.HasPrefix(u.Path, "/") {
			path = filepath.Join(root, filepath.FromSlash(u.Path))
		}
		if _, err := os.Stat(path); err != nil {
			faults = append(faults, fmt.Sprintf("%s:%d: link %q leads to no file", file, l.line, l.target))
		}
	}
	return faults
}
