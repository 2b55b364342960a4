package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

var packageClause = regexp.MustCompile(`(?m)^package [a-z]\w*$`)

// sortBlocks picks the Go files, parses the fragments and reports what is
// neither.
func sortBlocks(blocks []block) (whole []block, fragments int, faults []string) {
	for _, b := range blocks {
		switch b.info {
		case "go":
			if !packageClause.MatchString(b.code) {
				faults = append(faults, fmt.Sprintf("%s: a go block is no whole file; give it a package clause, or open it by \"go fragment\"", b))
				continue
			}
			whole = append(whole, b)
		case "go fragment":
			fragments++
			if err := parseFragment(b); err != nil {
				faults = append(faults, err.Error())
			}
		default:
			if strings.HasPrefix(b.info, "go ") || strings.HasPrefix(b.info, "golang") {
				faults = append(faults, fmt.Sprintf("%s: a block is opened by %q; only \"go\" and \"go fragment\" are known", b, b.info))
			}
		}
	}
	return whole, fragments, faults
}

// parseFragment accepts declarations, statements, or declarations followed by
// statements: whatever a page may show of a file.
func parseFragment(b block) error {
	var first error
	for _, frame := range []string{"package p\n%s", "package p\nfunc _() {\n%s\n}"} {
		_, err := parser.ParseFile(token.NewFileSet(), "", fmt.Sprintf(frame, b.code), parser.SkipObjectResolution)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	// A page may define types and then use them. Every prefix that ends in an
	// empty line could be the declarations.
	parts := strings.Split(b.code, "\n\n")
	for i := 1; i < len(parts); i++ {
		decl, stmt := strings.Join(parts[:i], "\n\n"), strings.Join(parts[i:], "\n\n")
		src := fmt.Sprintf("package p\n%s\nfunc _() {\n%s\n}", decl, stmt)
		if _, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s: the fragment does not parse: %w", b, first)
}

// compile builds each block as a package of the module at root. The go command
// sees the files through an overlay.
func compile(root string, blocks []block) error {
	dir, err := os.MkdirTemp("", "doccheck")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	args := []string{"build", "-buildvcs=false", "-o", os.DevNull, "-overlay=" + filepath.Join(dir, "overlay.json")}
	for i, b := range blocks {
		pkg := fmt.Sprintf("doccheck-block-%03d", i+1)
		file := filepath.Join(dir, pkg+".go")
		// The line directive makes the compiler name the page.
		text := fmt.Sprintf("//line %s:%d\n%s", b.file, b.line, b.code)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
		overlay.Replace[filepath.Join(root, pkg, "block.go")] = file
		args = append(args, "./"+pkg)
	}
	data, err := json.Marshal(overlay)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), data, 0o600); err != nil {
		return err
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build of the Go blocks: %w\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}
