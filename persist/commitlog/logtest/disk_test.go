package logtest_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist/commitlog"
	"github.com/twinsrv/twinsrv/persist/commitlog/logtest"
)

var errStruck = errors.New("struck")

func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, 0)) }

func open(t *testing.T, d *logtest.Disk) commitlog.File {
	t.Helper()
	f, err := d.Open("f")
	require.NoError(t, err)
	return f
}

func write(t *testing.T, f commitlog.File, at int64, b []byte) {
	t.Helper()
	_, err := f.WriteAt(b, at)
	require.NoError(t, err)
}

func filled(c byte, sectors int) []byte { return bytes.Repeat([]byte{c}, sectors*logtest.Sector) }

// after returns what crashes of that may leave of the file.
func after(t *testing.T, work func(t *testing.T, d *logtest.Disk)) map[string]bool {
	left := map[string]bool{}
	for seed := range uint64(200) {
		d := logtest.New()
		work(t, d)
		left[string(d.Crash(seeded(seed)).Content("f"))] = true
	}
	return left
}

func TestWhatWasSyncedStays(t *testing.T) {
	left := after(t, func(t *testing.T, d *logtest.Disk) {
		f := open(t, d)
		write(t, f, 0, filled('a', 3))
		require.NoError(t, f.Sync())
	})
	require.Equal(t, map[string]bool{string(filled('a', 3)): true}, left)
}

func TestAnyPartOfWhatWasNotSyncedMayStay(t *testing.T) {
	left := after(t, func(t *testing.T, d *logtest.Disk) {
		f := open(t, d)
		write(t, f, 0, filled('a', 2))
		require.NoError(t, f.Sync())
		write(t, f, 0, filled('b', 2))
		write(t, f, logtest.Sector, filled('c', 2))
	})
	sector := func(c byte) string { return string(filled(c, 1)) }
	for _, want := range []string{"aa", "ba", "ab", "ac", "bb", "bc", "bcc", "ac\x00", "aac", "bbc"} {
		all := ""
		for _, c := range []byte(want) {
			all += sector(c)
		}
		require.True(t, left[all], "%q", want)
	}
	for b := range left {
		require.Zero(t, len(b)%logtest.Sector)
		require.Contains(t, []int{2, 3}, len(b)/logtest.Sector)
		require.Contains(t, "ab", b[:1])
	}
}

// TestSyncAfterAFailedOne makes nothing durable that the failed one gave up.
func TestSyncAfterAFailedOne(t *testing.T) {
	work := func(again bool) func(t *testing.T, d *logtest.Disk) {
		return func(t *testing.T, d *logtest.Disk) {
			f := open(t, d)
			write(t, f, 0, filled('a', 1))
			require.NoError(t, f.Sync())
			write(t, f, 0, filled('b', 1))
			d.Fail = func(op logtest.Op, _ string) error { return errStruck }
			require.ErrorIs(t, f.Sync(), errStruck)
			d.Fail = nil
			if again {
				write(t, f, 0, filled('b', 1))
			}
			require.NoError(t, f.Sync())
			b := make([]byte, 1)
			_, err := f.ReadAt(b, 0)
			require.NoError(t, err)
			require.Equal(t, "b", string(b), "reads show it")
		}
	}
	require.True(t, after(t, work(false))[string(filled('a', 1))])
	longer := after(t, func(t *testing.T, d *logtest.Disk) {
		f := open(t, d)
		write(t, f, 0, filled('a', 2))
		d.Fail = func(logtest.Op, string) error { return errStruck }
		require.ErrorIs(t, f.Sync(), errStruck)
		d.Fail = nil
		write(t, f, 0, filled('b', 1))
		require.NoError(t, f.Sync())
	})
	require.True(t, longer[string(filled('b', 1))], "nor the length")
	require.True(t, longer[string(filled('b', 1))+string(filled('a', 1))])
	require.Equal(t, map[string]bool{string(filled('b', 1)): true}, after(t, work(true)))
}

// TestNameOfAFile is durable once the file was synced.
func TestNameOfAFile(t *testing.T) {
	for _, synced := range []bool{false, true} {
		missing := 0
		for seed := range uint64(40) {
			d := logtest.New()
			f := open(t, d)
			d.Fail = func(logtest.Op, string) error { return errStruck }
			require.ErrorIs(t, f.Sync(), errStruck)
			d.Fail = nil
			if synced {
				require.NoError(t, f.Sync())
			}
			names, err := d.Kill().Crash(seeded(seed)).Names()
			require.NoError(t, err)
			missing += 1 - len(names)
		}
		require.Equal(t, synced, missing == 0)
		require.Less(t, missing, 40)
	}
}

func TestKillTakesNothingAway(t *testing.T) {
	d := logtest.New()
	f := open(t, d)
	write(t, f, 0, filled('a', 1))
	next := d.Kill()
	_, err := f.WriteAt([]byte("x"), 0)
	require.ErrorIs(t, err, logtest.ErrCrashed)
	_, err = d.Names()
	require.ErrorIs(t, err, logtest.ErrCrashed)
	require.Equal(t, filled('a', 1), next.Content("f"))
	lost := false
	for seed := range uint64(20) {
		third := next.Kill().Crash(seeded(seed))
		lost = lost || len(third.Content("f")) == 0
		next = logtest.New()
		write(t, open(t, next), 0, filled('a', 1))
	}
	require.True(t, lost, "a crash does")
}

func TestFailures(t *testing.T) {
	d := logtest.New()
	f := open(t, d)
	var ops []logtest.Op
	d.Fail = func(op logtest.Op, name string) error {
		ops = append(ops, op)
		return errStruck
	}
	_, err := d.Names()
	require.ErrorIs(t, err, errStruck)
	_, err = d.Open("g")
	require.ErrorIs(t, err, errStruck)
	n, err := f.WriteAt(filled('a', 1), 0)
	require.ErrorIs(t, err, errStruck)
	require.Zero(t, n)
	require.ErrorIs(t, f.Sync(), errStruck)
	_, err = f.Size()
	require.ErrorIs(t, err, errStruck)
	require.Equal(t, []logtest.Op{logtest.Names, logtest.Open, logtest.Write, logtest.Sync, logtest.Read}, ops)

	d.Rand = seeded(1)
	some := map[int]bool{}
	for range 50 {
		n, err := f.WriteAt(filled('a', 3), 0)
		require.ErrorIs(t, err, errStruck)
		some[n/logtest.Sector] = true
	}
	require.Len(t, some, 4)
}

func TestFull(t *testing.T) {
	d := logtest.New()
	d.Full = 1000
	f := open(t, d)
	write(t, f, 0, filled('a', 1))
	n, err := f.WriteAt(filled('b', 1), 512)
	require.ErrorIs(t, err, logtest.ErrFull)
	require.Equal(t, 488, n)
	write(t, f, 0, filled('c', 1))
	d.Full = 0
	write(t, f, 512, filled('b', 1))
}

func TestDamage(t *testing.T) {
	d := logtest.New()
	d.Put("f", []byte{1, 2, 3})
	d.Flip("f", 1, 0)
	require.Equal(t, []byte{1, 3, 3}, d.Crash(seeded(1)).Content("f"))
	d = logtest.New()
	d.Put("f", []byte{1, 2, 3})
	d.Truncate("f", 2)
	other := d.Copy()
	d.Remove("f")
	require.Nil(t, d.Content("f"))
	require.Equal(t, []byte{1, 2}, other.Content("f"))
	b := make([]byte, 3)
	n, err := open(t, other).ReadAt(b, 0)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, 2, n)
}
