package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
)

// playFewAddresses is the child of the next test: it may not map much more than it
// has mapped already.
func playFewAddresses(path string) error {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	var pages uint64
	if _, err := fmt.Sscan(string(b), &pages); err != nil {
		return err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit); err != nil {
		return err
	}
	limit.Cur = pages*uint64(os.Getpagesize()) + 4<<30
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &limit); err != nil {
		return err
	}
	for i := range 3 { // the first time it is made
		s, err := Open(path, Config{})
		if err != nil {
			return err
		}
		if s.mapped != 0 {
			fmt.Println("no limit")
		}
		k := rooms(fmt.Sprint(i))
		_, err = s.Commit(ctx, []persist.Unit{create(k, strings.Repeat("x", 1<<20))})
		_, lerr := s.Load(ctx, k)
		if err := errors.Join(err, lerr, s.Close()); err != nil {
			return err
		}
	}
	fmt.Println("it does without")
	return nil
}

// A process that may not have the addresses has no room ahead, and a store.
func TestAStoreOpensWhereAddressesAreFew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	out, err := process(t, "addresses", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	if strings.Contains(string(out), "no limit") {
		t.Skip("addresses are not limited here")
	}
	require.Contains(t, string(out), "it does without")
	s := mustOpen(t, path, Config{VerifyFirst: true})
	require.Len(t, state(t, s, rooms("0")), 1<<20)
	require.NoError(t, s.Close())
	requireAlone(t, path)
}
