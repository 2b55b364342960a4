// Command doccheck keeps the project's Markdown true. It compiles the Go code
// in it and follows its relative links.
//
//	doccheck -root DIR [FILE.md ...]
//
// Without files it takes README.md, CHANGELOG.md and everything below docs/.
//
// A fenced block opened by ```go must be a whole file: it is built inside the
// module at root, as if it stood in a folder of its own there, so it may import
// whatever that module may. A block opened by ```go fragment is a piece of a
// file or of a function and only has to parse. Nothing is written below root.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	root := flag.String("root", ".", "folder of the module that the code is compiled in")
	flag.Parse()
	if err := run(*root, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root string, files []string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		if files, err = pages(root); err != nil {
			return err
		}
	}
	var blocks []block
	var faults []string
	links := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		page := parsePage(file, string(text))
		blocks = append(blocks, page.blocks...)
		links += len(page.links)
		faults = append(faults, brokenLinks(root, file, page.links)...)
	}
	whole, fragments, bad := sortBlocks(blocks)
	faults = append(faults, bad...)
	if len(whole) > 0 {
		if err := compile(root, whole); err != nil {
			faults = append(faults, err.Error())
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("%s\ndoccheck: %d fault(s)", strings.Join(faults, "\n"), len(faults))
	}
	fmt.Printf("doccheck: %d pages, %d files compiled, %d fragments parsed, %d links followed\n",
		len(files), len(whole), fragments, links)
	return nil
}

// pages lists the Markdown of a project, sorted.
func pages(root string) ([]string, error) {
	var files []string
	for _, name := range []string{"README.md", "CHANGELOG.md"} {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil {
			files = append(files, filepath.Join(root, name))
		}
	}
	docs := filepath.Join(root, "docs")
	if _, err := os.Stat(docs); err == nil {
		err := filepath.WalkDir(docs, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && filepath.Ext(path) == ".md" {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(files)
	return files, nil
}
