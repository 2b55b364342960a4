package cli_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/client"
)

// One sample has the pods and entities that change most, first.
func TestTop(t *testing.T) {
	t.Parallel()
	w := serve(t)
	w.must("import", "ndjson", writeFile(t, `{"pod":"docs","definition":{"type":"document"}}`))
	type sample struct {
		Seconds, ChangesPerSecond float64
		Changes                   int
		Pods                      []struct {
			Pod     string
			Changes int
		}
		Entities []struct {
			Pod, Name, Type string
			Changes         int
		}
		Server struct {
			StoreUp  bool
			Watchers int
		}
	}
	var s sample
	top := w.begin("top", "--interval", "8s", "--number", "2", "-o", "json")
	c, err := client.New(w.url, client.Config{})
	require.NoError(t, err)
	defer c.Close()
	for n, going := 0, true; going; n++ {
		for _, name := range []string{"hot", "warm", "hot", "cold", "hot"} {
			_, err := c.Entity("docs", name).Send(t.Context(), "merge", map[string]any{"n": n, "by": name + fmt.Sprint(n%3)})
			require.NoError(t, err)
			_, err = c.Entity("docs", name).Send(t.Context(), "remove", map[string]any{"pointer": "/n"})
			require.NoError(t, err)
		}
		select {
		case <-top.ended:
			going = false
		default:
		}
	}
	require.Zero(t, top.code(), top.stderr.String())
	require.NoError(t, json.Unmarshal([]byte(top.stdout.String()), &s))
	require.GreaterOrEqual(t, s.Seconds, 7.9)
	require.Positive(t, s.ChangesPerSecond)
	require.Equal(t, "docs", s.Pods[0].Pod)
	require.Equal(t, s.Changes, s.Pods[0].Changes)
	require.Len(t, s.Entities, 2)
	require.Equal(t, "hot", s.Entities[0].Name)
	require.Contains(t, []string{"merge", "remove"}, s.Entities[0].Type)
	require.True(t, s.Server.StoreUp)
	require.Equal(t, 1, s.Server.Watchers)
	require.False(t, strings.Contains(top.stdout.String(), "missed"))

	table := w.must("top", "docs", "--once", "-o", "table", "--interval", "100ms")
	require.Contains(t, table, "changes/s")
	require.Regexp(t, `(?m)^ENTITY +CHANGES/S +CHANGES +LAST MESSAGE$`, table)
	require.Contains(t, w.fails(2, "top", "--interval", "1ms"), "--interval")
	require.Contains(t, w.fails(3, "top", "nowhere", "--once"), "no_such_pod")
	forever := w.begin("top", "--once", "--interval", "1h")
	forever.until("it watches", func() bool {
		var one sample
		return json.Unmarshal([]byte(w.must("top", "--once", "--interval", "100ms")), &one) == nil && one.Server.Watchers == 2
	})
	require.Equal(t, 130, forever.interrupt())
	require.Empty(t, forever.stderr.String())
}
