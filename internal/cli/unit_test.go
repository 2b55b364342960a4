package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/twinsrv/twinsrv/client"
)

// Numbers keep their text in YAML, texts are texts again, and nothing in it does
// anything to a terminal.
func TestYAML(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"n":123456789012345678901234567890.000000000000001}`: "\"n\": 123456789012345678901234567890.000000000000001\n",
		`{"n":-0.10,"m":1E400,"o":1e-7,"z":0}`:                 "\"n\": -0.10\nm: 1E400\no: 1e-7\nz: 0\n",
		`{"b":1,"a":{"d":[],"c":{}},"e":[[1],{"x":null}]}`:     "b: 1\na:\n  d: []\n  c: {}\ne:\n  - - 1\n  - x: null\n",
		`true`:             "true\n",
		`"x"`:              "x\n",
		`"a\u001b[31m"`:    "\"a\\e[31m\"\n",
		`"a\u202eb\u009b"`: "\"a\\U0000202Eb\\x9B\"\n",
	} {
		got, err := toYAML([]byte(in))
		require.NoError(t, err)
		require.Equal(t, want, string(got), in)
	}
	for _, text := range []string{"true", "no", "null", "~", "1", "1.5", "1e3", "0x1f", "", " a", "a ", "a: b", "- a", "#a", "a #b", "2026-01-01", "é\n\tx", "'", `"`, "{", "[a]", "*a", "&a", "!a", "%a", "@a", "`a", "é", "\u00a0", "😀\u200d", "\ufeff"} {
		in, err := json.Marshal(map[string]string{text: text})
		require.NoError(t, err)
		got, err := toYAML(in)
		require.NoError(t, err)
		var back map[string]any
		require.NoError(t, yaml.Unmarshal(got, &back), "%s", got)
		require.Equal(t, map[string]any{text: text}, back, "%s", got)
	}
}

func TestEscapedJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"plain", "\x1b]0;x\x07", "\u009b\u202e\u00a0", "<b>&", "\U000e0001 x", "日本 ☂ é", "a\nb\tc"} {
		got, err := encodeJSON(map[string]string{"a": text})
		require.NoError(t, err)
		require.Equal(t, string(got), string(escapeJSON(got)))
		var back map[string]string
		require.NoError(t, json.Unmarshal(got, &back))
		require.Equal(t, text, back["a"], "%s", got)
	}
	got, err := encodeJSON(json.RawMessage(`{"a":"<日>","n":1.10}`))
	require.NoError(t, err)
	require.Equal(t, `{"a":"<日>","n":1.10}`, string(got))
	require.Equal(t, `"a\x1bb"`, Printable("a\x1bb"))
	require.Equal(t, "größe ☂", Printable("größe ☂"))
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ was, now, want string }{
		{`{"a":1}`, `{"a": 1}`, ``},
		{``, `{"a":1}`, `+/a 1`},
		{`{"a":1,"b":2}`, `{"b":2.0}`, `-/a 1  /b 2 → 2.0`},
		{`{"a":{"b":{"c":1}}}`, `{"a":{"b":{"c":2,"d/~":3}}}`, `/a/b/c 1 → 2  +/a/b/d~1~0 3`},
		{`{"a":[1,2,3,4]}`, `{"a":[1,5]}`, `/a/1 2 → 5  -/a/3 4  -/a/2 3`},
		{`{"a":[1]}`, `{"a":[1,[2],3]}`, `+/a/1 [2]  +/a/2 3`},
		{`{"a":[1]}`, `{"a":{"0":1}}`, `/a [1] → {"0":1}`},
		{`{"a":"x"}`, `{"a":null}`, `/a x → null`},
		{`1`, `2`, `/ 1 → 2`},
	} {
		var texts []string
		var was json.RawMessage
		if c.was != "" {
			was = json.RawMessage(c.was)
		}
		for _, d := range differences(was, json.RawMessage(c.now)) {
			texts = append(texts, d.String())
		}
		require.Equal(t, c.want, strings.Join(texts, "  "), "%s to %s", c.was, c.now)
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	value := json.RawMessage(`{"name":"x","state":{"a":{"b":[10,{"c":"d"}]},"odd name.":1,"q\"]":2}}`)
	for path, want := range map[string]string{
		"name": `"x"`, "state.a.b[0]": "10", "state.a.b[1].c": `"d"`, `state["odd name."]`: "1", `state["a"]["b"][1]["c"]`: `"d"`, `state["q\"]"]`: "2",
		"state.a.b[2]": "", "state.none": "", "state.a.b.c": "", "none": "", "state[": "", `state["a`: "", "state.a[x]": "", `state["a"b`: "",
	} {
		require.Equal(t, want, string(at(value, path)), path)
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{`{"a":1.10}`}, `{"a":1.10}`},
		{[]string{`7`}, `7`},
		{[]string{`"a=b"`}, `"a=b"`},
		{[]string{"a=b=c"}, `{"a":"b=c"}`},
		{[]string{"a=", "b:=null"}, `{"a":"","b":null}`},
		{[]string{"b:=[1, 2]", `c:={"d":"="}`, `ü "=x`}, `{"b":[1, 2],"c":{"d":"="},"ü \"":"x"}`},
		{[]string{"a::=1"}, `{"a:":1}`},
	} {
		got, err := bodyOf(c.args)
		require.NoError(t, err)
		require.Equal(t, c.want, string(got), "%q", c.args)
	}
	for _, args := range [][]string{{"a"}, {"a=1", "b"}, {"=1"}, {":=1"}, {"a:=x"}, {"{"}, {`{"a":1} x`}, {"a=1", "a:=1"}, {`{"a":1}`, "b=1"}} {
		_, err := bodyOf(args)
		require.Equal(t, ExitUsage, ExitCode(err), "%q", args)
	}
}

func TestMoments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		"2026-01-31T12:00:00Z":          time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
		"2026-01-31T12:00:00.5+02:00":   time.Date(2026, 1, 31, 10, 0, 0, 5e8, time.UTC),
		"2026-01-31 12:00":              time.Date(2026, 1, 31, 12, 0, 0, 0, time.Local),
		"2026-01-31":                    time.Date(2026, 1, 31, 0, 0, 0, 0, time.Local),
		"2026-01-31T23:59:59.123456789": {},
		"-5m":                           {},
		"x":                             {},
	} {
		got, err := moment(text)
		if want.IsZero() && text != "2026-01-31T23:59:59.123456789" {
			require.Error(t, err)
		} else if !want.IsZero() {
			require.NoError(t, err)
			require.True(t, want.Equal(got), "%s: %v", text, got)
		}
	}
	before := time.Now().Add(-time.Hour)
	got, err := moment("1h")
	require.NoError(t, err)
	require.False(t, got.Before(before))
	require.False(t, got.After(time.Now()))
}

func TestTables(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	tab := newTable(&b, 20, "A", "B", "C")
	require.NoError(t, tab.add("長い名", "x", ""))
	require.NoError(t, tab.add("é", "tab\there", strings.Repeat("z", 30)))
	require.NoError(t, tab.flush())
	require.NoError(t, tab.add("a name that is longer", "y", ""))
	require.NoError(t, tab.flush())
	require.Equal(t, "A       B          …\n長い名  x\né       \"tab\\there\"…\na name that is long…\n", b.String())
	require.Equal(t, "é", cut("é", 1))
	require.Equal(t, "…", cut("長長", 1))
	require.Equal(t, "長…", cut("長長", 3))
}

// A table of many lines is printed as they come.
func TestTablesKeepLittle(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	tab := newTable(&b, 0, "N")
	for range 10 * tableAhead {
		require.NoError(t, tab.add("x"))
		require.Less(t, len(tab.lines), tableAhead)
	}
	require.Equal(t, 10*tableAhead+1, strings.Count(b.String(), "\n"))
}

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"get", "send", "store", "serve", "history", "quarantine", "ls", "rm", "top"}
	for word, want := range map[string]string{
		"gte": "get", "hist": "history", "strore": "store", "sned": "send", "quarantain": "quarantine", "l": "ls", "xyz": "", "": "", "rmm": "rm", "sore": "store",
	} {
		require.Equal(t, want, nearest(word, names), word)
	}
	require.Equal(t, 3, edits("kitten", "sitting"))
	require.Equal(t, 1, edits("ab", "ba"))
}

func TestLinesOfBash(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line string
		want []string
		raw  string
		open byte
	}{
		{"twinsrv ", []string{"twinsrv", ""}, "", 0},
		{"twinsrv get  rooms a", []string{"twinsrv", "get", "rooms", "a"}, "a", 0},
		{`twinsrv get 'a b' c\ d`, []string{"twinsrv", "get", "a b", "c d"}, `c\ d`, 0},
		{`twinsrv "a\"b\$c\d" "x`, []string{"twinsrv", `a"b$c\d`, "x"}, `"x`, '"'},
		{`twinsrv 'x y`, []string{"twinsrv", "x y"}, `'x y`, '\''},
		{`twinsrv ''`, []string{"twinsrv", ""}, `''`, 0},
		{`a | twinsrv p`, []string{"twinsrv", "p"}, "p", 0},
		{`a; twinsrv --x=y`, []string{"twinsrv", "--x=y"}, "--x=y", 0},
	} {
		got := splitLine(c.line)
		require.Equal(t, bashLine{c.want, c.raw, c.open}, got, c.line)
	}
	for _, c := range []struct{ line, candidate, part, want string }{
		{"t a", "a b", "a", `a\ b`},
		{"t x:", "x:y z", "", `y\ z`},
		{"t --o=j", "--o=json", "j", "json"},
		{`t "a `, "a b", "a ", "a b"},
		{`t "$`, `$5"`, "$", `\$5\"`},
		{`t 'a`, "a b", "a", "a b"},
		{`t a\ b:`, "a b:c", "", "c"},
	} {
		line := splitLine(c.line)
		got, can := line.quote(c.candidate, c.part)
		require.True(t, can)
		require.Equal(t, c.want, got, c.line)
	}
	line := splitLine("t 'it")
	_, can := line.quote("it's", "it")
	require.False(t, can, "a quote cannot stand between such quotes")
}

// Words lead to the command and the argument that they are for.
func TestPlaces(t *testing.T) {
	t.Parallel()
	var all struct {
		Commands
		Check struct {
			Deep struct{} `cmd:""`
		} `cmd:""`
	}
	parser, err := kong.New(&all, kong.Name("twinsrv"), kong.Vars{"server": "http://127.0.0.1:1"})
	require.NoError(t, err)
	texts := func(words ...string) (texts []string) {
		p := newPlace(parser.Model.Node, words)
		for _, c := range p.candidates(t.Context()) {
			texts = append(texts, c.text)
		}
		if p.files {
			texts = append(texts, ":files")
		}
		return texts
	}
	require.Equal(t, []string{"pods", "patch"}, texts("p"))
	require.Equal(t, []string{"deep"}, texts("check", ""))
	require.Equal(t, []string{"table", "json", "yaml", "jsonl"}, texts("ls", "rooms", "-o", ""))
	require.Equal(t, []string{"table"}, texts("ls", "rooms", "-ao", "t"))
	require.Equal(t, []string{"--output=json", "--output=jsonl"}, texts("ls", "--all", "rooms", "--output=j"))
	require.Equal(t, []string{":files"}, texts("import", "ndjson", ""))
	require.Equal(t, []string{"bash", "zsh", "fish"}, texts("completion", ""))
	require.Equal(t, []string{"--filter"}, texts("ls", "x", "--fi"))
	require.Empty(t, texts("ls", "--", "--fi"))
	require.Empty(t, texts("get", "a", "b", "c"))
	require.NotContains(t, texts(""), "__complete")
	p := newPlace(parser.Model.Node, []string{"get", "--server", "http://x", "--timeout=3s", "rooms", "-o", "json", "to"})
	require.Equal(t, []string{"rooms"}, p.args)
	require.Equal(t, map[string]string{"server": "http://x", "timeout": "3s", "output": "json"}, p.given)
	require.Equal(t, "name", p.argument().Name)
}

// Exit codes go by what the server says, whatever wraps it.
func TestCodesOfErrors(t *testing.T) {
	t.Parallel()
	s := &Session{shown: "http://x"}
	for code, list := range map[int][]*client.Error{
		1: {{Status: 500, Code: client.Internal}, {Status: 500, Code: client.HandlerFailed}, {Status: 503, Code: client.Quarantined}, {Status: 501, Code: client.NoBackup}, {Status: 418}},
		2: {{Status: 400, Code: client.BadFilter}, {Status: 401, Code: client.Unauthorized}, {Status: 403, Code: client.ReadOnlyToken}, {Code: client.Unauthorized, Detail: "taken back"}},
		3: {{Status: 404, Code: client.NoSuchPod}, {Status: 404, Code: client.NotQuarantined}, {Status: 410, Code: client.RevisionDropped}, {Code: client.NoSuchPod}},
		4: {{Status: 409, Code: client.Conflict}, {Status: 409, Code: client.PodNotEmpty}, {Status: 412, Code: client.StaleRevision}, {Status: 412, Code: client.ConditionFailed}},
		5: {{Status: 422, Code: client.Rejected}, {Status: 422, Code: client.SchemaViolation}, {Status: 405, Code: client.TypedState}, {Status: 413, Code: client.BodyTooLarge}},
		6: {{Status: 429, Code: client.MailboxFull}, {Status: 503, Code: client.StoreUnavailable}, {Status: 504, Code: "timed_out"}},
		7: {{Status: 504, Code: client.OutcomeUnknown}, {Status: 502, Code: client.OutcomeUnknown}, {Code: client.OutcomeUnknown, Detail: "there was no answer"}},
	} {
		for _, e := range list {
			err := s.Explain(t.Context(), e)
			require.Equal(t, code, ExitCode(err), "%v", err)
			require.NotContains(t, err.Error(), "\n")
			require.Equal(t, err, s.Explain(t.Context(), err), "it is worded once")
		}
	}
	require.NoError(t, s.Explain(t.Context(), nil))
	require.Equal(t, ExitDone, ExitCode(nil))
}

func TestSavedFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	require.Equal(t, ExitUsage, ExitCode(Refuse(path, false)))
	require.NoError(t, Refuse(path, true))
	require.NoError(t, Refuse(path+"2", false))
}

// Within double quotes bash replaces what begins with ! by an earlier command:
// such a name is not completed there.
func TestNamesThatBashWouldReplaceAreLeftOut(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{`twinsrv get rooms "a`: false, `twinsrv get rooms 'a`: true, `twinsrv get rooms a`: true} {
		b := splitLine(line)
		_, is := b.quote("a!b", "a")
		require.Equal(t, want, is, line)
	}
}
