package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachMeasurementPrintsALine(t *testing.T) {
	var out, notes strings.Builder
	dir := t.TempDir()
	require.NoError(t, run([]string{"-for", "2ms", "-dir", dir}, &out, &notes))
	require.Empty(t, notes.String())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, len(measurements()))
	for i, line := range lines {
		require.Regexp(t, "^"+regexp.QuoteMeta(measurements()[i].name)+`\t[1-9]\d*\t[1-9]\d*\t\d+\.\d\d$`, line)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "a measurement left files behind")
}

func TestArguments(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"too few runs":   {[]string{"-runs", "4"}, "at least 5"},
		"no such name":   {[]string{"-bench", "nothing"}, "no measurement"},
		"bad expression": {[]string{"-bench", "("}, "-bench"},
		"no time":        {[]string{"-for", "0s"}, "needs some time"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, notes strings.Builder
			require.ErrorContains(t, run(c.args, &out, &notes), c.want)
			require.Empty(t, out.String())
		})
	}
}

func TestMedian(t *testing.T) {
	require.InDelta(t, 3, median([]float64{9, 1, 3}), 0)
	require.InDelta(t, 2.5, median([]float64{4, 1, 3, 2}), 0)
}
