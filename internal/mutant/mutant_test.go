package mutant_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/internal/mutant"
)

// TestAllAreDescribed: All lists every constant once, with the promise that it
// breaks.
func TestAllAreDescribed(t *testing.T) {
	constants := constants(t)
	names, descriptions := map[mutant.Name]bool{}, map[string]bool{}
	for _, m := range mutant.All() {
		require.False(t, names[m.Name], "%s is listed twice", m.Name)
		require.False(t, descriptions[m.Breaks], "%s says the same as another one", m.Name)
		names[m.Name], descriptions[m.Breaks] = true, true
		require.Contains(t, constants, m.Name)
		require.Regexp(t, `^[a-z]+(-[a-z]+)+$`, string(m.Name))
		require.Regexp(t, `^G[1-9]: .{20,}`, m.Breaks)
	}
	require.Len(t, names, len(constants), "a constant is missing in All")
}

// TestAllAreBuiltIn: each fault is asked for in its package and nowhere else.
func TestAllAreBuiltIn(t *testing.T) {
	source := map[string]string{}
	for _, pkg := range []string{"actor", "persist", "persist/commitlog", "entity", "pod"} {
		files, err := filepath.Glob(filepath.Join("..", "..", pkg, "*.go"))
		require.NoError(t, err)
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			source[pkg] += string(text)
		}
	}
	constants := constants(t)
	for _, m := range mutant.All() {
		for pkg, text := range source {
			built := strings.Contains(text, "mutant.On(mutant."+constants[m.Name]+")")
			require.Equal(t, pkg == m.Package, built, "%s in package %s", m.Name, pkg)
		}
	}
}

// constants returns the identifiers of the package's names, by value.
func constants(t *testing.T) map[mutant.Name]string {
	f, err := parser.ParseFile(token.NewFileSet(), "mutant.go", nil, 0)
	require.NoError(t, err)
	out := map[mutant.Name]string{}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := v.Type.(*ast.Ident); ok && typ.Name == "Name" {
			value, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			out[mutant.Name(value)] = v.Names[0].Name
		}
		return true
	})
	return out
}
