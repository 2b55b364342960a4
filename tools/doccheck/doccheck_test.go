package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "'''", "```")), 0o600))
	}
}

// The module that the pages of these tests belong to.
var module = map[string]string{
	"go.mod":         "module example.com/m\n\ngo 1.26.0\n",
	"greet/greet.go": "package greet\n\nfunc Hello() string { return \"hello\" }\n",
}

func check(t *testing.T, readme string) error {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, module)
	write(t, dir, map[string]string{"README.md": readme})
	return run(dir, nil)
}

func TestGoodPage(t *testing.T) {
	require.NoError(t, check(t, `# m
See [the code](greet/greet.go), [elsewhere](https://example.com/none) and [below](#below).

'''go
package main

import "example.com/m/greet"

func main() { println(greet.Hello()) }
'''

'''go
package main

func main() {}
'''

'''go fragment
type T struct{ N int }

t := T{1}
_ = t
'''

'''sh
curl [x](not/a/link)
'''
`))
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct{ page, want string }{
		"code that does not compile":  {"'''go\npackage main\n\nimport \"example.com/m/greet\"\n\nfunc main() { greet.Bye() }\n'''\n", "undefined: greet.Bye"},
		"unused import":               {"'''go\npackage main\n\nimport \"example.com/m/greet\"\n\nfunc main() {}\n'''\n", "imported and not used"},
		"a piece without its mark":    {"'''go\nx := 1\n'''\n", "README.md:2: a go block is no whole file"},
		"a fragment that parses not":  {"'''go fragment\nx := := 1\n'''\n", "README.md:2: the fragment does not parse"},
		"an unknown mark":             {"'''go ignore\nx := 1\n'''\n", "opened by \"go ignore\""},
		"a link to nothing":           {"\n[x](docs/none.md)\n", "README.md:2: link \"docs/none.md\""},
		"a rooted link to nothing":    {"[x](/docs/none.md)\n", "link \"/docs/none.md\""},
		"an unclosed block":           {"'''go\npackage main\n\nfunc main() { none() }\n", "undefined: none"},
		"an indented block in a list": {"1. x\n   '''go\n   package main\n\n   func main() { none() }\n   '''\n", "README.md:5:"},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorContains(t, check(t, c.page), c.want) })
	}
}

func TestCompilerNamesThePage(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, module)
	file := filepath.Join(dir, "README.md")
	p := parsePage(file, "# m\n\n```go\npackage main\n\nfunc main() { none() }\n```\n")
	require.ErrorContains(t, compile(dir, p.blocks), "README.md:6:")
}
