package killtest

import (
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// killed counts the processes that were killed and whose work was checked
// afterwards.
var killed atomic.Int64

// rounds is how many processes a test kills: fewer unless TWINSRV_KILLS says
// how many.
func rounds(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("TWINSRV_KILLS")
	if text == "" {
		return usual / raceDivisor
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "TWINSRV_KILLS is the number of kills in each test")
	return n
}

// customers is how many accounts there are.
const customers = 100

// TestTransfersOverKills: money goes to and fro among accounts that leave memory
// and come back all the time, while the process is killed over and over. In the
// end every transfer that was acknowledged has been withdrawn once and has
// arrived once, and the sum is what it was.
func TestTransfersOverKills(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for store, usual := range map[string]int{"bolt": 20, "bolt-alone": 10, "json": 12, "postgres": 10} {
		for name, kinds := range map[string][]string{
			"sync":    {accounts},
			"async":   {tills, ledgers},
			"sourced": {ledgers, accounts},
		} {
			t.Run(store+"/"+name, func(t *testing.T) {
				t.Parallel()
				br := branch{Store: store, Where: place(t, store), Kinds: kinds}
				kills := rounds(t, usual)
				done, wrong := transfers(t, self, br, kills, 10)
				require.Empty(t, wrong)
				require.Equal(t, kills, done)
			})
		}
	}
}

// transfers kills processes until so many are killed, or something is wrong. The
// books are closed after every so many kills.
func transfers(t *testing.T, binary string, br branch, kills, every int) (done int, wrong []string) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	d := newDriver(seed, br.Kinds, customers)
	t.Logf("seed %d", seed)
	for unchecked := 0; done < kills && len(d.wrong) == 0; {
		if d.run(t, startChild(t, binary, br), d.ending()) {
			unchecked++
		}
		if unchecked == min(every, kills-done) || len(d.wrong) > 0 {
			d.finish(t, br)
			killed.Add(int64(unchecked))
			done, unchecked = done+unchecked, 0
		}
	}
	accepted := 0
	for _, a := range d.done {
		if !a.Rejected {
			accepted++
		}
	}
	t.Logf("%d kills: %d transfers accepted, %d rejected, %d asked for again; %d messages found undelivered",
		done, accepted, len(d.done)-accepted, d.dupes, d.left)
	return done, d.wrong
}
