package simulated

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheDocumentShowsThisCode: what docs/simulation.md shows is what is here.
func TestTheDocumentShowsThisCode(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "simulation.md"))
	require.NoError(t, err)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var code strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		code.Write(text)
	}
	blocks := regexp.MustCompile("(?s)```go fragment\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		require.True(t, strings.Contains(code.String(), b[1]), "the package does not have this:\n%s", b[1])
	}
}
