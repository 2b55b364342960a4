package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/server"
)

// whole feeds all 863,904 readings of the real files, which takes a minute or
// two: go test ./examples/buildings -run TestRealFiles -v -whole
var whole = flag.Bool("whole", false, "feed every reading of the real files")

// The part of the real weather file that is fed otherwise: its last readings
// are missing ones.
const (
	partFrom = 5819
	partTo   = 6019
)

// After the real files were fed, every building over REST is what the files say
// last.
func TestRealFiles(t *testing.T) {
	t.Parallel()
	f := readRealFiles(t)
	lines := readLines(t, realFile(t, "weather0.csv"), "\n")
	if !*whole {
		f.readings, lines = f.readings[partFrom:partTo], lines[partFrom:partTo]
		for i := range f.readings {
			f.readings[i].Number = i + 1
		}
		require.Nil(t, f.readings[len(f.readings)-1].Celsius)
	}
	data := t.TempDir()
	twins, err := server.Open(t.Context(), server.Config{Data: data, Definitions: definitions})
	require.NoError(t, err)
	defer func() { require.NoError(t, twins.Close(context.Background())) }()
	h, err := findPods(twins.Pods())
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, feedFiles(t.Context(), &out, h.buildings, f, quiet))
	total := strconv.Itoa(96 * len(f.readings))
	require.Contains(t, out.String(), total+" messages sent, "+total+" acknowledged, 0 refused")
	t.Log(out.String())

	web := httptest.NewServer(twins.Handler())
	defer web.Close()
	got := readBuildings(t, web)
	info, err := os.Stat(filepath.Join(data, "twinsrv.db"))
	require.NoError(t, err)
	t.Logf("%d bytes on disk", info.Size())

	celsius, at := lastTemperature(t, lines)
	withTemperature := 0
	for _, row := range readLines(t, realFile(t, "meta_open.csv"), "\r") {
		// uid 0, primaryspaceusage 9, sqm 12, timezone 14, yearbuilt 15, newweatherfilename 18
		b, ok := got[row[0]]
		require.True(t, ok, row[0])
		delete(got, row[0])
		area, err := strconv.ParseFloat(row[12], 64)
		require.NoError(t, err)
		want := Building{
			Use: row[9], SquareMeters: area, TimeZone: row[14], YearBuilt: row[15], WeatherFile: row[18],
			Floors: map[string]Summary{},
		}
		if row[18] == "weather0.csv" {
			withTemperature++
			want.OutdoorCelsius, want.OutdoorAt, want.Readings = &celsius, at, len(lines)
		}
		require.Equal(t, want, b, row[0])
	}
	require.Empty(t, got)
	require.Equal(t, 96, withTemperature)
}

// readLines reads the rows behind the first one, without the code under test.
func readLines(t *testing.T, path, end string) [][]string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	rows, err := csv.NewReader(strings.NewReader(strings.ReplaceAll(string(data), end, "\n"))).ReadAll()
	require.NoError(t, err)
	return rows[1:]
}

func lastTemperature(t *testing.T, rows [][]string) (celsius float64, at string) {
	t.Helper()
	for _, row := range rows {
		f, err := strconv.ParseFloat(row[2], 64)
		if err == nil && f != -9999 {
			celsius, at = f, row[0]
		}
	}
	require.NotEmpty(t, at)
	return celsius, at
}

// readBuildings reads all buildings page by page, and each of them once more by
// its own address.
func readBuildings(t *testing.T, web *httptest.Server) map[string]Building {
	t.Helper()
	got := map[string]Building{}
	for cursor := ""; ; {
		var page struct {
			Items []struct {
				Name  string   `json:"name"`
				State Building `json:"state"`
			} `json:"items"`
			Next string `json:"next"`
		}
		get(t, web, "/v1/pods/buildings/entities?limit=200&cursor="+url.QueryEscape(cursor), &page)
		for _, i := range page.Items {
			var b Building
			get(t, web, "/v1/pods/buildings/entities/"+url.PathEscape(i.Name)+"/state", &b)
			require.Equal(t, i.State, b)
			require.NotContains(t, got, i.Name)
			got[i.Name] = b
		}
		if cursor = page.Next; cursor == "" {
			require.Len(t, got, 507)
			return got
		}
	}
}

func get(t *testing.T, web *httptest.Server, path string, into any) {
	t.Helper()
	resp, err := web.Client().Get(web.URL + path)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode, path)
	require.NoError(t, json.NewDecoder(resp.Body).Decode(into))
}
