package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a message that nobody waited for came to is what send would have printed.
func TestAnswers(t *testing.T) {
	t.Parallel()
	w := serve(t)
	send := func(args ...string) (id string) {
		var at struct{ Future, Path string }
		require.NoError(t, json.Unmarshal([]byte(w.must(append([]string{"send", "gauges", "oil", "--async", "-o", "json"}, args...)...)), &at))
		require.Equal(t, "/v1/futures/"+at.Future, at.Path)
		return at.Future
	}
	w.must("send", "gauges", "oil", "add", "n:=10")
	taken := send("take", "n:=3")
	require.Equal(t, "7\n", w.must("answer", taken))
	require.Equal(t, "7\n", w.must("answer", "/v1/futures/"+taken), "the path will do, and an answer stays")
	require.Contains(t, w.fails(5, "answer", send("take", "n:=30")), "only 7 are there")
	require.Contains(t, w.fails(1, "answer", send("boom")), "handler_failed")

	text := w.run("send", "gauges", "oil", "total", "--async", "-o", "table").stdout
	_, command, _ := strings.Cut(text, "`twinsrv ")
	command, _, _ = strings.Cut(command, "`")
	require.Equal(t, "7\n", w.must(strings.Fields(command)...), text)

	slow := send("hang")
	require.Contains(t, w.fails(7, "answer", slow, "--timeout", "10ms"), "no answer yet")
	require.Contains(t, w.must("answer", slow, "--cancel", "-o", "table"), "nobody waits")
	require.Contains(t, w.fails(7, "answer", slow), "cancelled")

	require.Contains(t, w.fails(3, "answer", "nothing"), "15 minutes")
	w.fails(2, "answer", "")
	w.must("answer", taken, "--cancel")
	w.fails(3, "answer", taken)
}

// A member that no export has is told, and not left out.
func TestImportsTellOfUnknownMembers(t *testing.T) {
	t.Parallel()
	w := serve(t)
	r := w.feed(`{"pod":"notes","definition":{"type":"document"}}
{"pod":"notes","name":"a","sate":{"v":1}}
{"pod":"notes","name":"b","state":{"v":1}} {"pod":"notes","name":"c","state":{"v":1}}
{"pod":"notes","name":"d","state":{"v":1}}
`, "import", "ndjson", "-", "-o", "table")
	require.Equal(t, 8, r.code)
	require.Contains(t, r.stderr, `"sate"`)
	require.Contains(t, r.stderr, "-:3")
	require.Equal(t, "d\n", w.must("ls", "notes", "-o", "table", "--select", "name")[len("NAME\n"):])

	file := w.must("export", "notes")
	require.Contains(t, file, `"end":true`)
	require.Zero(t, w.feed(file, "import", "ndjson", "-").code, "an export is imported as it is")
}
