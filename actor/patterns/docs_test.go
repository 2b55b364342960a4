package patterns_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The snippets of docs/patterns.md are parts of the examples, which run.
func TestThePageShowsTheExamples(t *testing.T) {
	page, err := os.ReadFile("../../docs/patterns.md")
	require.NoError(t, err)
	examples, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	indent := regexp.MustCompile(`(?m)^\t+`)
	flat := indent.ReplaceAllString(string(examples), "")
	snippets := regexp.MustCompile("(?s)```go[^\n]*\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(snippets), 15)
	for _, s := range snippets {
		if !strings.Contains(flat, indent.ReplaceAllString(s[1], "")) {
			t.Errorf("not in example_test.go:\n%s", s[1])
		}
	}
}
