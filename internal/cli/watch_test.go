package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// numbers are the values of n that a watch has printed, in their order.
func (r *running) numbers() (all []int) {
	for _, line := range r.lines() {
		var l struct {
			Kind  string
			State struct{ N *int }
		}
		require.NoError(r.t, json.Unmarshal([]byte(line), &l), line)
		if l.State.N != nil {
			all = append(all, *l.State.N)
		}
	}
	return all
}

// A watch goes on when the server was killed, and has each change once, also
// those that came while it was not connected.
func TestWatchOverKills(t *testing.T) {
	t.Parallel()
	w := serve(t)
	w.must("import", "ndjson", writeFile(t, `{"pod":"docs","definition":{"type":"document"}}`))
	all := w.begin("watch", "docs", "--from", "0")
	one := w.begin("watch", "docs", "a", "--from", "0")
	var want []int
	put := func(n int) {
		w.must("send", "docs", "a", "merge", fmt.Sprintf("n:=%d", n))
		want = append(want, n)
	}
	n := 0
	for range 3 {
		for range 3 {
			n++
			put(n)
		}
		w.must("send", "docs", "b", "merge", "other=1")
		all.until("it has all so far", func() bool { return len(all.numbers()) == n })
		one.until("it has all so far", func() bool { return len(one.numbers()) == n })
		said := strings.Count(all.stderr.String(), "is lost")
		w.kill()
		all.until("it says that the connection is lost", func() bool { return strings.Count(all.stderr.String(), "is lost") > said })
		w.start()
		n++
		put(n)
	}
	all.until("it has all", func() bool { return len(all.numbers()) == n })
	one.until("it has all", func() bool { return len(one.numbers()) == n })
	require.Equal(t, want, all.numbers())
	require.Equal(t, want, one.numbers())
	require.Contains(t, all.stderr.String(), "it is connected again")
	require.NotContains(t, all.stdout.String(), `"gap"`)
	require.Equal(t, 130, all.interrupt())
	require.NotContains(t, all.stderr.String(), "error")
	require.Equal(t, 130, one.interrupt())

	// Another one goes on where the first ended.
	var last struct{ ID uint64 }
	lines := all.lines()
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-2]), &last))
	rest := w.must("watch", "docs", "--from", fmt.Sprint(last.ID), "--limit", "1")
	require.Equal(t, lines[len(lines)-1]+"\n", rest)
}

func TestWatch(t *testing.T) {
	t.Parallel()
	w := serve(t)
	w.must("import", "ndjson", writeFile(t, `{"pod":"docs","definition":{"type":"document"}}`))
	warm := w.begin("watch", "docs", "--filter", "state.n > 10", "--from", "0")
	now := w.begin("watch", "docs")
	// A watch from now on says nothing that it has begun: so it is tried until it
	// shows something.
	tries := 0
	now.until("it has begun", func() bool {
		tries++
		w.must("send", "docs", "begin", "merge", fmt.Sprintf("tries:=%d", tries))
		return now.stdout.String() != ""
	})
	for _, n := range []int{5, 15, 16, 3} {
		w.must("send", "docs", "a\x1b[31m", "merge", fmt.Sprintf("n:=%d", n))
	}
	w.must("rm", "docs", "a\x1b[31m")
	warm.until("it has what is warm", func() bool { return len(warm.lines()) == 3 })
	for i, kind := range []string{"changed", "changed", "left"} {
		require.Contains(t, warm.lines()[i], `"kind":"`+kind+`"`)
	}
	now.until("it has the end", func() bool { return strings.Contains(now.stdout.String(), `"deleted"`) })
	require.NotContains(t, now.stdout.String(), "\x1b")
	require.Contains(t, now.stdout.String(), `"name":"a\u001b[31m"`)
	require.Equal(t, 130, now.interrupt())

	yaml := w.must("watch", "docs", "a\x1b[31m", "--from", "0", "--limit", "2", "-o", "yaml")
	require.Contains(t, yaml, "\n---\n")
	require.Contains(t, yaml, `name: "a\e[31m"`)
	table := w.must("watch", "docs", "a\x1b[31m", "--from", "0", "--limit", "2", "-o", "table")
	require.Regexp(t, `^TIME +KIND +ENTITY +REVISION +TYPE +STATE\n`, table)
	require.Contains(t, table, `"docs/a\x1b[31m"`)
	require.Contains(t, w.fails(3, "watch", "nowhere"), "no_such_pod")
	require.Contains(t, w.fails(3, "watch", "docs", "--from", "999999"), "--from")
	require.Contains(t, w.fails(2, "watch", "docs", "--filter", "state."), "bad_filter")
}

// What the history has dropped is told, as a change of its own and to people.
func TestWatchOfAGap(t *testing.T) {
	t.Parallel()
	w := serve(t, "--keep-changes", "100")
	var in strings.Builder
	in.WriteString(`{"pod":"docs","definition":{"type":"document"}}` + "\n")
	for n := range 1500 {
		fmt.Fprintf(&in, `{"pod":"docs","name":"c%d","state":{"n":%d}}`+"\n", n%100, n) // many, so that a commit has many
	}
	require.Zero(t, w.feed(in.String(), "import", "ndjson", "-").code)
	require.Eventually(t, func() bool {
		var pod struct{ History struct{ Dropped int } }
		require.NoError(t, json.Unmarshal([]byte(w.must("pods", "docs")), &pod))
		return pod.History.Dropped > 0
	}, patience, tick)
	r := w.run("watch", "docs", "--from", "0", "--limit", "2")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, `"kind":"gap"`)
	require.Contains(t, r.stdout, `"from":0`)
	require.Contains(t, r.stderr, "are missing (trimmed); read anew")
	r = w.run("history", "docs", "c99", "--limit", "1", "--diff")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stderr, "is the oldest that the history has")
}
