package guide

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/httpapi"
)

// block is a fenced block of the guide.
type block struct {
	kind, text string
	line       int // of its fence
}

// The guides.
const (
	httpGuide = "docs/http.md"
	cliGuide  = "docs/cli.md"
)

// page returns a guide and its blocks.
func page(t *testing.T, name string) (text string, blocks []block) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
	require.NoError(t, err)
	text = string(data)
	for _, m := range regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$").FindAllStringSubmatchIndex(text, -1) {
		blocks = append(blocks, block{text[m[2]:m[3]], text[m[4]:m[5]], 1 + strings.Count(text[:m[0]], "\n")})
	}
	require.Equal(t, 2*len(blocks), strings.Count(text, "```"), "every fence of the guide is understood")
	return text, blocks
}

// The guide's Go code is what the client's examples run, and each of them has
// a piece in it.
func TestTheGuideQuotesTheExamplesOfTheClient(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "..", "client", "guide_test.go"))
	require.NoError(t, err)
	left := make(map[string]string) // the examples' bodies that are not quoted
	for _, m := range regexp.MustCompile(`(?ms)^func (Example\w+)\(\) \{\n(.*?)^\}$`).FindAllStringSubmatch(string(data), -1) {
		left[m[1]] = m[2]
	}
	require.NotEmpty(t, left)
	_, blocks := page(t, httpGuide)
	for _, b := range blocks {
		if !strings.HasPrefix(b.kind, "go") {
			continue
		}
		code := regexp.MustCompile(`(?m)^(.)`).ReplaceAllString(b.text, "\t$1")
		found := ""
		for name, body := range left {
			if strings.Contains("\n"+body, "\n"+code) {
				found = name
			}
		}
		require.NotEmpty(t, found, "docs/http.md:%d: no example of client/guide_test.go that is not quoted already has the lines\n%s", b.line, b.text)
		delete(left, found)
	}
	require.Empty(t, left, "the guide quotes these examples nowhere")
}

// The table of errors has each code, and no other, beside its status.
func TestTheGuideListsEveryCode(t *testing.T) {
	t.Parallel()
	text, _ := page(t, httpGuide)
	_, text, found := strings.Cut(text, "\n## Errors\n")
	require.True(t, found)
	text, _, found = strings.Cut(text, "\n## ")
	require.True(t, found)
	var want, got []string
	for _, c := range httpapi.Codes() {
		want = append(want, fmt.Sprintf("%d %s", c.Status(), c))
	}
	statuses := ""
	for _, row := range regexp.MustCompile(`(?m)^\| ([\d, ]*)\| ([^|]*) \|`).FindAllStringSubmatch(text, -1) {
		if s := strings.TrimSpace(row[1]); s != "" {
			statuses = s // an empty cell repeats the one above
		}
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(row[2], -1) {
			status := httpapi.Code(m[1]).Status()
			require.Contains(t, strings.Split(statuses, ", "), strconv.Itoa(status), "the status of %s", m[1])
			got = append(got, fmt.Sprintf("%d %s", status, m[1]))
		}
	}
	require.ElementsMatch(t, want, got)
}
