package client_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/client"
)

// TestMetrics reads the figures of a real server.
func TestMetrics(t *testing.T) {
	w := newWorld(t)
	_, err := w.c.Entity("gauges", "a").Send(t.Context(), "add", add{N: 1})
	require.NoError(t, err)
	all, err := w.c.Metrics(t.Context())
	require.NoError(t, err)
	figure := func(name string, labels ...string) float64 {
		t.Helper()
		for _, f := range all {
			same := f.Name == name
			for i := 0; i < len(labels); i += 2 {
				same = same && f.Labels[labels[i]] == labels[i+1]
			}
			if same {
				return f.Value
			}
		}
		require.Fail(t, "there is no such figure", "%s%q", name, labels)
		return 0
	}
	require.EqualValues(t, 1, figure("twinsrv_asks_total", "outcome", "ok"))
	require.EqualValues(t, 1, figure("twinsrv_entities", "state", "active"))
	require.EqualValues(t, 1, figure("twinsrv_store_up"))
	require.Positive(t, figure("twinsrv_commit_duration_seconds_count"))
	require.Positive(t, figure("twinsrv_commit_duration_seconds_bucket", "le", "+Inf"))
}

// TestMetricsOfOthers reads all that the format has, and refuses what it has not.
func TestMetricsOfOthers(t *testing.T) {
	w := newWorld(t)
	w.next(says(200, "# HELP a {b} 1\n# TYPE a counter\na 1\n\nb{x=\"1\"} -2.5e3 1700000000000\n"+
		"c{ x=\"a\\\"b\\\\c\\nd,}\", y=\"\" ,} +Inf\nd{} NaN\n"))
	all, err := w.c.Metrics(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 4)
	require.True(t, math.IsNaN(all[3].Value))
	require.Equal(t, []client.Figure{
		{Name: "a", Value: 1},
		{Name: "b", Labels: map[string]string{"x": "1"}, Value: -2500},
		{Name: "c", Labels: map[string]string{"x": "a\"b\\c\nd,}", "y": ""}, Value: math.Inf(1)},
	}, all[:3])
	for _, bad := range []string{"<html>", "a", "a{", `a{x="1`, `a{x} 1`, `a{x="1"}`, "a one", "{} 1"} {
		w.next(says(200, bad+"\n"))
		_, err := w.c.Metrics(t.Context())
		require.ErrorContains(t, err, "metrics", bad)
	}
}
