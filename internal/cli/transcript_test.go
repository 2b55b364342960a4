package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// transcript is what a terminal would show of some commands: each behind a $,
// what it printed, what it said on the standard error output behind a !, and its
// exit code if that is not 0.
type transcript struct {
	w    *world
	text strings.Builder
}

// run runs a command.
func (s *transcript) run(args ...string) { s.feed("", args...) }

// table runs a command that prints for people.
func (s *transcript) table(args ...string) { s.feed("", append(args, "-o", "table")...) }

// feed runs a command with a standard input.
func (s *transcript) feed(stdin string, args ...string) {
	s.w.t.Helper()
	shown := make([]string, len(args))
	for i, a := range args {
		if shown[i] = a; regexp.MustCompile(`[^\w./:=@,+-]`).MatchString(a) || a == "" {
			shown[i] = "'" + strings.ReplaceAll(fmt.Sprintf("%q", a)[1:len(fmt.Sprintf("%q", a))-1], `\"`, `"`) + "'"
		}
	}
	fmt.Fprintf(&s.text, "$ twinsrv %s\n", strings.Join(shown, " "))
	r := s.w.feed(stdin, args...)
	s.text.WriteString(r.stdout)
	for line := range strings.Lines(r.stderr) {
		s.text.WriteString("! " + line)
	}
	if r.code != 0 {
		fmt.Fprintf(&s.text, "(exit %d)\n", r.code)
	}
	s.text.WriteByte('\n')
}

// normal leaves out what differs from one run to the next.
func (s *transcript) normal() string {
	text := strings.ReplaceAll(s.text.String(), s.w.url, "http://SERVER")
	for _, r := range []struct{ pattern, by string }{
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`, "2026-01-01T12:00:00Z"},
		{`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`, "2026-01-01 12:00:00"},
		{`"cursor":"[^"]*"`, `"cursor":"…"`},
		{`/v1/futures/\w+`, "/v1/futures/FUTURE"},
		{`"future": "\w+"`, `"future": "FUTURE"`},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.by)
	}
	return text
}

// compare compares the whole with a file of testdata, or writes that.
func (s *transcript) compare(name string) {
	s.w.t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(s.w.t, os.MkdirAll("testdata", 0o755))
		require.NoError(s.w.t, os.WriteFile(path, []byte(s.normal()), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(s.w.t, err)
	require.Equal(s.w.t, string(want), s.normal(), "go test ./internal/cli -update writes %s anew", path)
}

// rooms declares a pod and some entities of it, with names that are not easy.
func (s *transcript) rooms() {
	s.w.t.Helper()
	for _, line := range strings.Split(`{"pod":"rooms","definition":{"type":"document","index":["state.floor"],"schema":{"type":"object","properties":{"celsius":{"type":"number","maximum":80}}}}}
{"pod":"rooms","name":"tower-3-21","state":{"celsius":21.5,"floor":"3"}}
{"pod":"rooms","name":"tower/4/1","state":{"celsius":19,"floor":"4"}}
{"pod":"rooms","name":"the big hall","state":{"celsius":23,"floor":"0","seats":{"rows":12,"of":[10,12]}}}
{"pod":"rooms","name":"größer ☂","state":{"floor":"5"}}`, "\n") {
		r := s.w.feed(line, "import", "ndjson", "-") // one at a time, so that their lives are what they are each time
		require.Zero(s.w.t, r.code, r.stderr)
	}
}

func TestReading(t *testing.T) {
	t.Parallel()
	s := &transcript{w: serve(t)}
	s.run("pods", "-o", "jsonl")
	s.rooms()
	s.table("pods", "--count")
	s.run("pods", "rooms", "-o", "yaml")
	s.table("pods", "gauges")
	s.run("ls", "rooms")
	s.table("ls", "rooms")
	s.run("ls", "rooms", "-o", "json", "--filter", "state.celsius > 20.0", "--sort=-state.celsius")
	s.run("ls", "rooms", "-o", "yaml", "--prefix", "the")
	s.table("ls", "rooms", "--select", `name,state.celsius,state.seats.of[1],state["floor"],revision`)
	s.run("ls", "rooms", "--select", "state.floor,name", "--limit", "2")
	s.run("ls", "rooms", "--filter", "state.celsius >")
	s.run("ls", "rooms", "--filter", "false", "-o", "json")
	s.run("ls", "rooms", "--filter", "false", "-o", "yaml")
	s.table("ls", "rooms", "--filter", "false")
	s.run("ls", "nowhere")
	s.table("get", "rooms", "the big hall")
	s.run("get", "rooms", "tower/4/1")
	s.run("get", "rooms", "größer ☂", "-o", "yaml")
	s.run("get", "rooms", "größer ☂", "-o", "jsonl")
	s.run("get", "rooms", "tower-3-21", "--state", "-o", "jsonl")
	s.run("get", "rooms", "nowhere")
	s.run("get", "rooms", "..")
	s.compare("reading")
}

func TestWriting(t *testing.T) {
	t.Parallel()
	s := &transcript{w: serve(t)}
	s.rooms()
	s.run("send", "rooms", "lobby", "merge", `{"celsius":20}`)
	s.table("send", "rooms", "lobby", "merge", "celsius:=21.5", "floor=0", "note=a=b", "open:=true")
	s.feed(`{"people": 12}`, "send", "rooms", "lobby", "merge", "-")
	s.run("send", "rooms", "lobby", "merge", "people:=13", "--id", "order-1")
	s.run("send", "rooms", "lobby", "merge", "people:=14")
	s.run("send", "rooms", "lobby", "merge", "people:=13", "--id", "order-1")
	s.run("send", "rooms", "lobby", "merge", "people:=99", "--id", "order-1")
	s.run("get", "rooms", "lobby", "--state", "-o", "jsonl")
	s.run("send", "rooms", "lobby", "merge", "celsius=warm")
	s.run("send", "rooms", "lobby", "nonsense")
	s.run("send", "rooms", "lobby", "merge", "celsius")
	s.run("send", "rooms", "lobby", "merge", `{"celsius":`)
	s.run("send", "rooms", "lobby", "merge", "celsius:=warm")
	s.run("send", "rooms", "lobby", "merge", "a=1", "a=2")
	s.run("send", "rooms", "lobby", "merge", "people:=0", "--condition", "state.people > 100")
	s.run("send", "rooms", "lobby", "merge", "people:=0", "--if-match", "7-1")
	s.run("send", "rooms", "lobby", "merge", "people:=0", "--if-match", "seven")
	s.run("send", "gauges", "oil", "add", "n:=5")
	s.run("send", "gauges", "oil", "take", "n:=2")
	s.table("send", "gauges", "oil", "total")
	s.run("send", "gauges", "oil", "take", "n:=10")
	s.run("send", "gauges", "oil", "boom")
	s.run("send", "gauges", "oil", "add")
	s.run("patch", "gauges", "oil", "total:=9")

	s.run("patch", "rooms", "lobby", "celsius:=22", "open:=null")
	s.table("patch", "rooms", "lobby", `{"celsius":22.5}`, "--if-match", "7-6")
	s.run("patch", "rooms", "lobby", `{"celsius":23}`, "--if-match", "7-6")
	s.run("patch", "rooms", "lobby", `{"celsius":23}`, "--condition", "state.celsius > 30.0")
	s.run("patch", "rooms", "lobby", `{"on":true}`, "--at", "/lamp")
	s.run("patch", "rooms", "lobby", "--json-patch", `[{"op":"add","path":"/lamp","value":null},{"op":"add","path":"/n","value":1E400}]`)
	s.run("patch", "rooms", "lobby", `{"on":true}`, "--at", "lamp")
	s.run("patch", "rooms", "lobby", "--json-patch", `[{"op":"test","path":"/celsius","value":1}]`)
	s.run("patch", "rooms", "lobby", "--json-patch", `{"op":"test"}`)
	s.run("patch", "rooms", "nowhere", "a:=1")
	s.run("get", "rooms", "lobby", "-o", "jsonl")

	s.table("rm", "rooms", "lobby", "--condition", "state.people == 0")
	s.run("rm", "rooms", "lobby", "--if-match", "7-1")
	s.table("rm", "rooms", "lobby", "--if-match", "7-8")
	s.run("rm", "rooms", "lobby")
	s.run("rm", "rooms", "tower/4/1")
	s.run("rm", "rooms")
	s.run("rm", "rooms", "--if-match", "2-1")
	s.run("rm", "rooms", "--cascade")
	s.run("rm", "rooms")
	s.compare("writing")
}

func TestHistory(t *testing.T) {
	t.Parallel()
	s := &transcript{w: serve(t)}
	s.rooms()
	for _, change := range [][]string{
		{"celsius:=22"}, {"floor:=null", "devices:=[1,2,3]"}, {"devices:=[1,4]", "a/b~c:={\"d\":1}"}, {"celsius:=22.50"},
	} {
		s.w.must(append([]string{"patch", "rooms", "tower-3-21"}, change...)...)
	}
	s.table("history", "rooms", "tower-3-21")
	s.table("history", "rooms", "tower-3-21", "--diff")
	s.run("history", "rooms", "tower-3-21", "--diff", "--from", "3", "--limit", "2")
	s.run("history", "rooms", "tower-3-21", "--last", "2")
	s.run("history", "rooms", "tower-3-21", "--from", "2", "--to", "3", "-o", "yaml")
	s.run("get", "rooms", "tower-3-21", "--revision", "1")
	s.run("get", "rooms", "tower-3-21", "--revision", "99")
	s.run("get", "rooms", "tower-3-21", "--at", "2020-01-01")
	s.table("get", "rooms", "tower-3-21", "--at", "0s")
	s.run("get", "rooms", "tower-3-21", "--at", "yesterday")
	s.run("get", "rooms", "tower-3-21", "--at", "1h", "--revision", "1")
	s.w.must("rm", "rooms", "tower-3-21")
	s.w.must("send", "rooms", "tower-3-21", "merge", "celsius:=1")
	s.table("history", "rooms", "tower-3-21")
	s.table("history", "rooms", "tower-3-21", "--earlier", "--diff", "--from", "4")
	s.run("history", "rooms", "nowhere")
	s.run("history", "rooms", "tower-3-21", "--last", "2", "--from", "1")
	s.compare("history")
}

func TestExportAndImport(t *testing.T) {
	t.Parallel()
	s := &transcript{w: serve(t)}
	s.rooms()
	s.w.must("send", "rooms", "huge", "set", "pointer=/n", "value:=123456789012345678901234567890.000000000001")
	s.run("export", "rooms")
	file := filepath.Join(t.TempDir(), "rooms.ndjson")
	s.w.must("export", "rooms", "-f", file)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, s.w.must("export", "rooms"), string(data))
	require.Contains(t, s.w.fails(2, "export", "rooms", "-f", file), "--force")
	s.w.must("export", "rooms", "-f", file, "--force")
	entries, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left")

	s.feed(string(data), "import", "ndjson", "-", "--pod", "copy")
	s.run("ls", "copy", "--filter", `name == "huge"`, "--select", "name,state")
	s.feed(string(data), "import", "ndjson", "-", "-o", "table")

	bad := `{"pod":"rooms","name":"a","state":{"celsius":1}}

{"pod":"rooms","name":"b","state":{"celsius":"hot"}}
nonsense
{"name":"c","state":{}}
{"pod":"gauges","name":"d","state":{}}
{"pod":"rooms","name":"e","state":{"celsius":2}}
{"pod":"none","name":"f","state":{}}
{"pod":"rooms","name":"g","state":7}`
	s.feed(bad, "import", "ndjson", "-")
	s.feed(bad, "import", "ndjson", "-", "-o", "json")
	s.feed(bad, "import", "ndjson", "-", "-o", "yaml")
	s.feed(bad, "import", "ndjson", "-", "-o", "table")
	s.feed("", "import", "ndjson", "-", "-o", "json")
	s.run("ls", "rooms", "--filter", `name in ["a","b","e"]`, "--select", "name,state.celsius")
	s.feed(strings.Join(strings.SplitAfter(string(data), "\n")[:3], ""), "import", "ndjson", "-")
	s.run("import", "xml", "file")
	s.run("import", "ndjson", "nowhere.ndjson")
	s.run("export", "nowhere")
	s.compare("export")
}
