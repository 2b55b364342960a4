package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/server"
)

func runToEnd(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var b strings.Builder
	err = run(t.Context(), append(args, "--listen", "127.0.0.1:0", "--rate", "1000000", "--exit"), &b, io.Discard)
	return b.String(), err
}

func TestRunToTheEnd(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	out, err := runToEnd(t, "--data", data, "--headlines", "200")
	require.NoError(t, err)
	require.Regexp(t, `^serving .* on http://127\.0\.0\.1:\d+
14 companies of companies\.csv; the feed goes on behind headline 0
200 headlines, \d+ mentions, \d+\.\d seconds
$`, out)
	out, err = runToEnd(t, "--data", data, "--headlines", "250")
	require.NoError(t, err)
	require.Contains(t, out, "behind headline 200\n50 headlines")
	out, err = runToEnd(t, "--data", data, "--headlines", "100")
	require.NoError(t, err)
	require.Contains(t, out, "behind headline 250\n0 headlines")

	file := filepath.Join(t.TempDir(), "mine.csv")
	require.NoError(t, os.WriteFile(file, []byte("Symbol,Security,GICS Sector\nAAPL,Apple Inc.,Information Technology\n"), 0o600))
	out, err = runToEnd(t, "--data", data, "--headlines", "10", "--companies", file)
	require.NoError(t, err)
	require.Contains(t, out, "1 companies of mine.csv; the feed goes on behind headline 0\n10 headlines", "other companies are another feed")
}

func TestRunRefusals(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.csv")
	require.NoError(t, os.WriteFile(bad, []byte("Symbol\n"), 0o600))
	for want, args := range map[string][]string{
		"--rate is from 1":                      {"--rate", "0"},
		"--headlines is 0":                      {"--headlines=-1"},
		"--digest is at least 1s":               {"--digest", "999ms"},
		"--exit needs --headlines":              {"--exit"},
		"open none.csv":                         {"--companies", "none.csv"},
		"the first line does not name a column": {"--companies", bad},
		"not a loopback address":                {"--listen", "0.0.0.0:0"},
		"unknown flag":                          {"--headline", "3"},
	} {
		data := filepath.Join(t.TempDir(), "data")
		err := run(t.Context(), append([]string{"--data", data}, args...), io.Discard, io.Discard)
		require.ErrorContains(t, err, want)
		require.NoDirExists(t, data, "nothing is begun")
	}
}

// web is a client of a server of the example.
type web struct {
	t      *testing.T
	client *http.Client
	url    string
}

// do sends a request and decodes the answer.
func (w web) do(method, path, body string, into any) int {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	require.NoError(w.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := w.client.Do(req)
	require.NoError(w.t, err)
	defer res.Body.Close()
	if into != nil && res.StatusCode < 300 {
		require.NoError(w.t, json.NewDecoder(res.Body).Decode(into))
	}
	return res.StatusCode
}

// Everything can be asked for over REST while the feed goes on.
func TestEverythingOverREST(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lines, out := io.Pipe()
	ended := make(chan error, 1)
	data := t.TempDir()
	go func() {
		err := run(ctx, []string{"--data", data, "--listen", "127.0.0.1:0", "--headlines", "600", "--rate", "100000"}, out, io.Discard)
		_ = out.Close()
		ended <- err
	}()
	address := ""
	for scan := bufio.NewScanner(lines); scan.Scan() && !strings.HasPrefix(scan.Text(), "600 headlines"); {
		if _, a, ok := strings.Cut(scan.Text(), " on http://"); ok {
			address = a
		}
	}
	w := web{t, &http.Client{Transport: &http.Transport{}}, "http://" + address}
	defer w.client.CloseIdleConnections()
	f, err := sampleFacts()
	require.NoError(t, err)
	companies, sectors := expected(f, 1, 600)

	require.Equal(t, http.StatusNotFound, w.do("GET", "/v1/pods/companies/entities/ZZZZ/state", "", nil))
	for symbol, want := range companies {
		var got Company
		require.Equal(t, http.StatusOK, w.do("GET", "/v1/pods/companies/entities/"+symbol+"/state", "", &got))
		require.Equal(t, want, got)
	}
	for name, want := range sectors {
		path := "/v1/pods/sectors/entities/" + url.PathEscape(name) + "/state"
		require.Eventually(t, func() bool {
			var got Sector
			return w.do("GET", path, "", &got) == http.StatusOK && got.Total == want.Total
		}, patience, 5*time.Millisecond)
		var list []Ranked
		require.Equal(t, http.StatusOK, w.do("POST", "/v1/pods/sectors/entities/"+url.PathEscape(name)+"/messages/top", `{"n":1}`, &list))
		require.Len(t, list, 1)
		require.Equal(t, name, list[0].Sector)
	}
	var found struct{ Items []json.RawMessage }
	filter := url.QueryEscape(`state.sector == "Information Technology" && state.mentions > 0`)
	require.Equal(t, http.StatusOK, w.do("GET", "/v1/pods/companies/entities?filter="+filter, "", &found))
	require.Len(t, found.Items, 3)

	require.Less(t, w.do("POST", "/v1/pods/rankings/entities/now/messages/refresh", `{}`, nil), 300)
	var now Ranking
	require.Eventually(t, func() bool {
		return w.do("GET", "/v1/pods/rankings/entities/now/state", "", &now) == http.StatusOK && now.Answered == 1
	}, patience, 5*time.Millisecond)
	var want []Ranked
	for symbol, c := range companies {
		want = append(want, Ranked{Symbol: symbol, Sector: c.Sector, Mentions: c.Mentions, Sentiment: c.Sentiment})
	}
	require.Equal(t, top(want, ranked), now.Top)
	require.True(t, now.Complete)

	w.client.CloseIdleConnections()
	cancel()
	require.NoError(t, <-ended)
}

func TestOneProcessAFolder(t *testing.T) {
	data := t.TempDir()
	s, err := server.Open(t.Context(), server.Config{Data: data})
	require.NoError(t, err)
	defer s.Close(context.Background())
	_, err = runToEnd(t, "--data", data, "--headlines", "1")
	require.ErrorIs(t, err, server.ErrInUse)
}
