package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEachMeasurementPrintsItsLines(t *testing.T) {
	var out, notes strings.Builder
	dir := t.TempDir()
	const chosen = "durable|stores/jsonfile|journal/append|tell|ping-pong|ask" // without those whose size is fixed
	require.NoError(t, run([]string{"-for", "2ms", "-dir", dir, "-bench", chosen}, &out, &notes))
	require.Equal(t, legend, notes.String())
	var want []string
	for _, m := range measurements() {
		if m.matches(regexp.MustCompile(chosen)) {
			for _, name := range m.lines {
				want = append(want, regexp.QuoteMeta(name)+`\t[1-9]\d*(\.\d)?\t[1-9]\d*(\.\d)?\t\d+\.\d\d\n`)
			}
		}
	}
	require.Regexp(t, "^"+strings.Join(want, "")+"$", out.String())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "a measurement left files behind")
}

func TestBothSidesSpawnAsMany(t *testing.T) {
	for name, load := range map[string]func(int) ([]float64, error){"ours": spawn, "protoactor-go": protoSpawn} {
		values, err := load(2000)
		require.NoError(t, err, name)
		require.Len(t, values, 2, name)
		require.Positive(t, values[0], name)
		require.Greater(t, values[1], 64.0, "%s: bytes of an actor", name)
	}
}

func TestBothSidesOfAForkJoinSumUp(t *testing.T) {
	for _, load := range []load{forkJoin, channelForkJoin, standingForkJoin} {
		values, err := load("", 1)
		require.NoError(t, err)
		require.Len(t, values, 2)
	}
}

func TestLatenciesFindQuantiles(t *testing.T) {
	var l latencies
	require.Zero(t, l.quantile(0.5))
	for i := range 1000 {
		l.add(time.Duration(i) * time.Microsecond)
	}
	require.InEpsilon(t, 500_000, l.quantile(0.5), 1.0/64)
	require.InEpsilon(t, 990_000, l.quantile(0.99), 1.0/64)
	for _, v := range []uint64{0, 1, 63, 64, 127, 128, 129, 1 << 20, 1<<40 + 12345, 1<<63 - 1} {
		require.InEpsilon(t, float64(v)+1, value(bucket(v))+1, 1.0/64, "%d", v)
	}
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
