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
	var examples []byte
	for _, file := range []string{"example_test.go", "../../persist/persistentservice_example_test.go"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		examples = append(examples, text...)
	}
	indent := regexp.MustCompile(`(?m)^\t+`)
	flat := indent.ReplaceAllString(string(examples), "")
	snippets := regexp.MustCompile("(?s)```go[^\n]*\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(snippets), 15)
	for _, s := range snippets {
		if !strings.Contains(flat, indent.ReplaceAllString(s[1], "")) {
			t.Errorf("not in an example:\n%s", s[1])
		}
	}
}
