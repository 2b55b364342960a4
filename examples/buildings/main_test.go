package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/server"
)

// noTerminal stands for the standard error output of a program that nobody
// looks at.
func noTerminal(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func runToEnd(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var b strings.Builder
	err = run(t.Context(), append(args, "--listen", "127.0.0.1:0", "--exit"), &b, noTerminal(t))
	return b.String(), err
}

// sampleOnDisk writes the sample to files.
func sampleOnDisk(t *testing.T) (metadata, weather string) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, sample))
	return filepath.Join(dir, "sample", "buildings.csv"), filepath.Join(dir, "sample", "weather.csv")
}

func TestRunOverFiles(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	metadata, weather := sampleOnDisk(t)
	out, err := runToEnd(t, "--data", data, "--metadata", metadata, "--weather", weather)
	require.NoError(t, err)
	require.Regexp(t, `^serving .* on http://127\.0\.0\.1:\d+
5 buildings described from buildings\.csv
2 of them follow the 48 readings of weather\.csv; 96 messages to send
96 messages sent, 96 acknowledged, 0 refused, \d+\.\d seconds
$`, out)

	out, err = runToEnd(t, "--data", data, "--metadata", metadata, "--weather", weather)
	require.NoError(t, err)
	require.Contains(t, out, "\n0 messages sent, 0 acknowledged, 0 refused")
	out, err = runToEnd(t, "--data", data, "--metadata", metadata)
	require.NoError(t, err)
	require.NotContains(t, out, "messages sent")
	out, err = runToEnd(t, "--data", data)
	require.NoError(t, err)
	require.Contains(t, out, "nothing is simulated")
}

// serving runs the example until ctx ends, and returns once it has printed a line
// with some text: where it listens, what else it prints, which waits to be read,
// and what it ends with.
func serving(ctx context.Context, t *testing.T, text string) (address string, more io.Reader, ended <-chan error) {
	t.Helper()
	lines, w := io.Pipe()
	end := make(chan error, 1)
	terminal, data := noTerminal(t), t.TempDir()
	go func() {
		err := run(ctx, []string{"--data", data, "--listen", "127.0.0.1:0"}, w, terminal)
		_ = w.Close()
		end <- err
	}()
	for scan := bufio.NewScanner(lines); scan.Scan() && !strings.Contains(scan.Text(), text); {
		if _, a, ok := strings.Cut(scan.Text(), " on http://"); ok {
			address = a
		}
	}
	return address, lines, end
}

func TestRunServesOn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address, _, ended := serving(ctx, t, "at its end: ")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/v1/pods/buildings/entities/tower/state", nil)
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var tower Building
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&tower))
	require.Equal(t, floorCount*roomsOnFloor, tower.Total.Rooms)
	client.CloseIdleConnections()

	cancel()
	require.NoError(t, <-ended)
}

func TestRunRefusals(t *testing.T) {
	metadata, weather := sampleOnDisk(t)
	bad := filepath.Join(t.TempDir(), "bad.csv")
	require.NoError(t, os.WriteFile(bad, []byte("uid\n"), 0o600))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"weather without buildings": {[]string{"--weather", weather}, "--weather needs --metadata"},
		"no such file":              {[]string{"--metadata", "none.csv"}, "read the buildings: open none.csv"},
		"no such weather":           {[]string{"--metadata", metadata, "--weather", "none.csv"}, "read the weather: open none.csv"},
		"another kind of file":      {[]string{"--metadata", bad}, "the first line does not name a column"},
		"an open address":           {[]string{"--listen", "0.0.0.0:0"}, "not a loopback address"},
		"no address":                {[]string{"--listen", "here"}, "not host:port"},
		"an unknown flag":           {[]string{"--wether", weather}, "unknown flag"},
	} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			err := run(t.Context(), append([]string{"--data", data, "--exit"}, c.args...), io.Discard, noTerminal(t))
			require.ErrorContains(t, err, c.want)
			require.NoDirExists(t, data, "nothing is begun")
		})
	}
}

func TestOneProcessAFolder(t *testing.T) {
	data := t.TempDir()
	s, err := server.Open(t.Context(), server.Config{Data: data})
	require.NoError(t, err)
	defer s.Close(context.Background())
	_, err = runToEnd(t, "--data", data)
	require.ErrorIs(t, err, server.ErrInUse)
}
