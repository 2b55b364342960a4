package modeltest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if err := errors.Join(server.stop(), goleak.Find()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// check runs a property so often, or in proportion: rapid's own number of checks
// is 100, and -rapid.checks or RAPID_CHECKS say another.
func check(t *testing.T, checks int, f func(t *rapid.T)) {
	t.Helper()
	const usual = 100
	said, err := strconv.Atoi(flag.Lookup("rapid.checks").Value.String())
	if err != nil {
		t.Fatal(err)
	}
	n := max(checks*said/usual, 1)
	if testing.Short() {
		n = max(n/4, 1)
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = flag.Set("rapid.checks", strconv.Itoa(said)) }()
	rapid.Check(t, f)
}

// run is one run on a medium: what is in media are the kinds that it may move
// to.
func run(t *rapid.T, seeded bool, on medium, media ...medium) {
	w := &world{t: t, seeded: seeded, medium: on, media: append(media, on)}
	w.model = newModel(func(format string, args ...any) { t.Helper(); t.Fatalf(format, args...) })
	defer w.cleanup()
	idle := rapid.SampledFrom([]time.Duration{-1, 5 * time.Millisecond, 50 * time.Millisecond}).Draw(t, "idle")
	w.cfg = pod.Config{
		IdleAfter: idle,
		MaxActive: rapid.SampledFrom([]int{-1, 2, 4}).Draw(t, "active"),
		Mailbox:   rapid.SampledFrom([]int{1024, 4}).Draw(t, "mailbox"),
		Committer: persist.CommitterConfig{
			KeepFor:    rapid.SampledFrom([]time.Duration{0, 500 * time.Millisecond}).Draw(t, "keep"),
			MinBackoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond,
		},
	}
	w.eager = rapid.Bool().Draw(t, "eager")
	w.open()
	t.Repeat(w.actions())
	w.finish()
}

// finish lets everything be delivered, and compares once more.
func (w *world) finish() {
	for _, k := range w.keys {
		w.settle(w.books[k])
	}
	w.delivered()
	for _, k := range w.keys {
		w.settle(w.books[k])
	}
	w.conserved()
	w.close()
	w.shut()
	w.open()
	w.close()
	w.shut()
}

// TestMemory runs on the store that loses what is not synced, in virtual time.
func TestMemory(t *testing.T) {
	check(t, 40, func(t *rapid.T) { run(t, true, newInMemory()) })
}

// TestFiles runs on the stores of files, in virtual time, and moves between
// them.
func TestFiles(t *testing.T) {
	places := &folders{dir: t.TempDir()}
	for name, kind := range map[string]fileKind{"bolt": boltFiles(), "json": jsonFiles()} {
		t.Run(name, func(t *testing.T) {
			check(t, 5, func(t *rapid.T) {
				run(t, true, newOnDisk(places, kind), newInMemory(), newOnDisk(places, boltFiles()), newOnDisk(places, jsonFiles()))
			})
		})
	}
}

// TestPostgres runs on a real server, in virtual time, and moves to bolt and
// back.
func TestPostgres(t *testing.T) {
	server.need(t)
	places := &folders{dir: t.TempDir()}
	check(t, 3, func(t *rapid.T) { run(t, true, newInPostgres(), newOnDisk(places, boltFiles())) })
}

// TestThreads runs on all stores with the executor that programs have, where
// things really happen side by side.
func TestThreads(t *testing.T) {
	places := &folders{dir: t.TempDir()}
	t.Run("memory", func(t *testing.T) {
		check(t, 4, func(t *rapid.T) { run(t, false, newInMemory()) })
	})
	t.Run("bolt", func(t *testing.T) {
		check(t, 2, func(t *rapid.T) { run(t, false, newOnDisk(places, boltFiles())) })
	})
	t.Run("json", func(t *testing.T) {
		check(t, 2, func(t *rapid.T) { run(t, false, newOnDisk(places, jsonFiles())) })
	})
	t.Run("postgres", func(t *testing.T) {
		server.need(t)
		check(t, 1, func(t *rapid.T) { run(t, false, newInPostgres()) })
	})
}
