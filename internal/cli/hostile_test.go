package cli_test

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What was done is not called undone because the output has no room.
func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full: ", err)
	}
	defer full.Close()
	w := serve(t)
	for _, args := range [][]string{
		{"send", "gauges", "oil", "add", "n:=1"}, {"pods"}, {"ls", "gauges"}, {"get", "gauges", "oil"}, {"history", "gauges", "oil"},
		{"export"}, {"rm", "gauges", "oil"},
	} {
		cmd := w.command(args...)
		cmd.Stdout = full
		said, err := cmd.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		text, err := io.ReadAll(said)
		require.NoError(t, err)
		require.Error(t, cmd.Wait(), args)
		require.Equal(t, 1, cmd.ProcessState.ExitCode(), "%v: %s", args, text)
		require.Contains(t, string(text), "the output cannot be written")
	}
	w.fails(3, "get", "gauges", "oil") // it was deleted
}

// A name that comes from a variable which is not set is no name left out.
func TestEmptyNamesAreRefused(t *testing.T) {
	t.Parallel()
	w := serve(t)
	w.must("send", "gauges", "oil", "add", "n:=1")
	w.fails(2, "rm", "gauges", "", "--cascade")
	w.fails(2, "rm", "gauges", "")
	w.fails(2, "watch", "gauges", "")
	w.fails(2, "watch", "")
	w.must("get", "gauges", "oil")
}

// A device or a link is not replaced, whoever asks for it.
func TestExportReplacesFilesAlone(t *testing.T) {
	t.Parallel()
	w := serve(t)
	dir := t.TempDir()
	link, target := filepath.Join(dir, "link"), filepath.Join(dir, "target")
	require.NoError(t, os.WriteFile(target, []byte("mine"), 0o600))
	require.NoError(t, os.Symlink(target, link))
	require.Contains(t, w.fails(2, "export", "-f", link, "--force"), "no ordinary file")
	require.Contains(t, w.fails(2, "export", "-f", dir, "--force"), "no ordinary file")
	w.must("export", "-f", target, "--force")
	_, err := os.Readlink(link)
	require.NoError(t, err)
}

// Another text would be stored in the place of what is no UTF-8.
func TestInvalidUTF8IsRefused(t *testing.T) {
	t.Parallel()
	w := serve(t)
	w.fails(2, "send", "gauges", "n\xff", "add", "n:=1")
	w.fails(2, "send", "gauges", "oil", "add", "n=\xff")
	require.Equal(t, 2, w.feed("{\"n\":\"\xff\"}", "send", "gauges", "oil", "add", "-").code)
	require.Empty(t, w.must("ls", "gauges"))
}

// Texts that YAML 1.1 takes for something else are quoted.
func TestYAMLOfOlderReaders(t *testing.T) {
	t.Parallel()
	w := serve(t)
	for _, text := range []string{"yes", "Off", "n", "12:30:45", "=", "<<", "null", "1e3", "~", "", "2024-01-01", "0x1f", "1_000"} {
		require.Zero(t, w.feed(`{"pod":"notes","definition":{"type":"document"}}`+"\n"+`{"pod":"notes","name":"a","state":{"text":"`+text+`"}}`+"\n", "import", "ndjson", "-").code)
		require.Contains(t, w.must("get", "notes", "a", "--state", "-o", "yaml"), `text: "`+text+`"`)
	}
}

// Lines of people are not taken for the end of an export, and files of Windows
// are read.
func TestImportOfOddLines(t *testing.T) {
	t.Parallel()
	w := serve(t)
	lines := "\ufeff" + `{"pod":"notes","definition":{"type":"document"}}` + "\r\n" + `{"pod":"notes","name":"a","state":{"v":1},"end":true}` + "\r\n"
	require.Zero(t, w.feed(lines, "import", "ndjson", "-").code)
	w.must("get", "notes", "a")
}

// Of an import that got no answer nobody knows what was taken.
func TestImportWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	silent := answering(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	file := writeFile(t, `{"pod":"notes","name":"a","state":{"v":1}}`+"\n")
	silent.fails(7, "import", "ndjson", file, "--timeout", "2s")
	r := silent.feed(`{"pod":"notes","name":"a","state":{"v":1}}`+"\n", "import", "ndjson", "-", "--timeout", "2s")
	require.Equal(t, 7, r.code, r)
}

// A name that a command would take for a flag is not offered: in its place the
// pod would be deleted.
func TestCompletionLeavesOutNamesThatAreFlags(t *testing.T) {
	t.Parallel()
	w := serve(t)
	lines := `{"pod":"notes","definition":{"type":"document"}}` + "\n"
	for _, name := range []string{"--cascade", "-x", "plain"} {
		lines += `{"pod":"notes","name":"` + name + `","state":{}}` + "\n"
	}
	require.Zero(t, w.feed(lines, "import", "ndjson", "-").code)
	require.Equal(t, "plain\t\n", w.must("__complete", "fish", "rm", "notes", ""))
}

// An address that is only nearly right is said to be so.
func TestAddresses(t *testing.T) {
	t.Parallel()
	w := serve(t)
	require.Contains(t, w.fails(1, "pods", "--server", strings.Replace(w.url, "http:", "https:", 1)), "speaks http, not https")
	empty := calling(t, "")
	require.NotEqual(t, 2, empty.run("pods", "--timeout", "1ms").code, "an empty variable is no wrong one")
}

// What cannot be printed fails the command that prints it.
func TestTheVersionHasToBePrinted(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full here:", err)
	}
	defer full.Close()
	c := calling(t, "http://127.0.0.1:1")
	cmd := c.command("version")
	cmd.Stdout = full
	var failed *exec.ExitError
	require.ErrorAs(t, cmd.Run(), &failed)
	require.Equal(t, 1, failed.ExitCode())
}
