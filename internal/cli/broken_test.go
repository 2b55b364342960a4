package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An export that breaks off leaves no file, and the one that was there.
func TestExportThatBreaksOff(t *testing.T) {
	t.Parallel()
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("cursor") != "" {
			panic(http.ErrAbortHandler) // each time that it goes on behind the first line
		}
		_, _ = io.WriteString(w, `{"pod":"docs","definition":{"type":"document"},"cursor":"a"}`+"\n"+`{"pod":"docs","name":"a`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	file := filepath.Join(t.TempDir(), "docs.ndjson")
	require.Contains(t, c.fails(6, "export", "-f", file), "not to the end")
	require.NoFileExists(t, file)
	require.NoError(t, os.WriteFile(file, []byte("an old one"), 0o600))
	c.fails(6, "export", "-f", file, "--force")
	old, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "an old one", string(old))
	entries, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Contains(t, c.fails(1, "export", "-f", filepath.Join(file, "none")), "not a directory")
	r := c.run("export")
	require.Equal(t, 6, r.code)
	require.Equal(t, 1, strings.Count(r.stdout, "\n"), "what came is printed, and has no end: %s", r.stdout)
}

// An import whose server is killed says how far it came, and that the rest is
// not known.
func TestImportThatBreaksOff(t *testing.T) {
	t.Parallel()
	w := serve(t)
	file := writeFile(t, `{"pod":"docs","definition":{"type":"document"}}`)
	w.must("import", "ndjson", file)
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	cmd := w.command("import", "ndjson", "-")
	cmd.Stdin = in
	going := start(t, cmd)
	require.NoError(t, in.Close())
	for n := range 3 {
		_, err = fmt.Fprintf(out, `{"pod":"docs","name":"n%d","state":{}}`+"\n", n)
		require.NoError(t, err)
	}
	_, err = io.WriteString(out, "nonsense\n")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return w.run("get", "docs", "n2").code == 0 }, patience, tick)
	w.kill()
	require.Equal(t, 7, going.code(), going.stderr.String())
	require.Regexp(t, `\d lines have results`, going.stderr.String())
	require.Contains(t, going.stderr.String(), "can be imported again")
	w.start()
	require.Zero(t, w.run("import", "ndjson", file).code)
	require.Zero(t, w.run("get", "docs", "n1").code)
}

// Ctrl-C ends what is on its way, and says whether that is done.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	asked, done := make(chan struct{}, 8), make(chan struct{})
	c := answering(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		select {
		case <-done:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(done) }) // before the server's own, which waits for it
	for _, a := range []struct {
		args []string
		says string
	}{
		{[]string{"get", "docs", "a"}, "it was interrupted, and is not done"},
		{[]string{"ls", "docs"}, "it was interrupted, and is not done"},
		{[]string{"send", "docs", "a", "merge", "a:=1"}, "it was interrupted, and may or may not have been done"},
		{[]string{"rm", "docs", "a"}, "it was interrupted, and may or may not have been done"},
	} {
		r := c.begin(a.args...)
		<-asked
		require.Equal(t, 130, r.interrupt(), "%q", a.args)
		require.Equal(t, "twinsrv: error: "+a.says+"\n", r.stderr.String())
	}
}
