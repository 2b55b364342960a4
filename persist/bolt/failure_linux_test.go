package bolt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

// cannotWrite makes every write to the store's file fail, and no read.
func cannotWrite(t *testing.T, s *Store) {
	f, err := os.Open(s.path)
	require.NoError(t, err)
	require.NoError(t, syscall.Dup3(int(f.Fd()), int(s.file.Fd()), 0))
	require.NoError(t, f.Close())
}

func TestAFailedCommitIsUnknownAndClosesTheStoreUntilReopen(t *testing.T) {
	s := tempStore(t)
	o := mustCommit(t, s, create(rooms("a"), "A"))
	cannotWrite(t, s)
	_, err := s.Commit(ctx, []persist.Unit{step(rooms("a"), o[0].Life, 1, "A2")})
	require.ErrorIs(t, err, persist.ErrUnknown)
	require.NotErrorIs(t, err, persist.ErrUnavailable, "that would say that nothing was done")
	require.ErrorContains(t, err, s.path)

	_, err = s.Load(ctx, rooms("a"))
	require.ErrorIs(t, err, persist.ErrUnavailable)
	_, err = s.Commit(ctx, []persist.Unit{create(rooms("b"), "B")})
	require.ErrorIs(t, err, persist.ErrUnavailable)
	require.NotErrorIs(t, err, persist.ErrUnknown)
	_, err = s.Trim(ctx, 0, 1, 1)
	require.ErrorIs(t, err, persist.ErrUnavailable)

	require.NoError(t, s.Reopen(ctx))
	require.Equal(t, "A", state(t, s, rooms("a")))
	mustCommit(t, s, step(rooms("a"), o[0].Life, 1, "A2"))
	require.Equal(t, "A2", state(t, s, rooms("a")))
}

func TestReopenMayFailAndBeTriedAgain(t *testing.T) {
	s := tempStore(t)
	mustCommit(t, s, create(rooms("a"), "A"))
	cannotWrite(t, s)
	_, err := s.Commit(ctx, []persist.Unit{create(rooms("b"), "B")})
	require.ErrorIs(t, err, persist.ErrUnknown)

	other := mustOpen(t, s.path, Config{})
	for range 2 {
		err = s.Reopen(ctx)
		require.ErrorIs(t, err, persist.ErrUnavailable)
		require.ErrorIs(t, err, ErrLocked)
		_, err = s.Load(ctx, rooms("a"))
		require.ErrorIs(t, err, persist.ErrUnavailable)
	}
	require.NoError(t, other.Close())
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, s.Reopen(cancelled), persist.ErrUnavailable)
	require.NoError(t, s.Reopen(ctx))
	require.Equal(t, "A", state(t, s, rooms("a")))
}

func TestAStoreClosedWhileBrokenStaysClosed(t *testing.T) {
	s := tempStore(t)
	cannotWrite(t, s)
	_, err := s.Commit(ctx, []persist.Unit{create(rooms("b"), "B")})
	require.ErrorIs(t, err, persist.ErrUnknown)
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Reopen(ctx), persist.ErrUnavailable)
	require.NoError(t, s.Close())
}

func TestAStuckFileIsLetGo(t *testing.T) {
	s := tempStore(t)
	mustCommit(t, s, create(rooms("a"), "A"))
	s.db.Begin(true) //nolint:errcheck // holds bbolt's lock for ever, as a panic in it does
	s.fail(errors.New("stuck"), true)
	require.NoError(t, s.Reopen(ctx), "the file's lock was given back")
	require.Equal(t, "A", state(t, s, rooms("a")))
}

func TestAFileTruncatedUnderTheStoreIsAnError(t *testing.T) {
	for _, size := range []int64{0, testPage} {
		s := tempStore(t)
		mustCommit(t, s, create(rooms("a"), "A"))
		require.NoError(t, os.Truncate(s.path, size))
		_, err := s.Load(ctx, rooms("a"))
		require.Error(t, err)
		require.NotErrorIs(t, err, persist.ErrNotFound)
		require.ErrorContains(t, err, s.path)
		_, err = s.Commit(ctx, []persist.Unit{create(rooms("b"), "B")})
		require.Error(t, err)
		require.NoError(t, s.Close())
	}
}

func TestMetaPagesLostUnderTheStoreLeaveNoLockBehind(t *testing.T) {
	s := tempStore(t)
	mustCommit(t, s, create(rooms("a"), "A"))
	db := s.db
	f, err := os.OpenFile(s.path, os.O_RDWR, 0)
	require.NoError(t, err)
	lost := make([]byte, 2*testPage)
	noise(lost, 1)
	_, err = f.WriteAt(lost, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	_, err = s.Load(ctx, rooms("a"))
	require.ErrorIs(t, err, persist.ErrUnavailable)
	require.ErrorIs(t, err, ErrDamaged)
	begun := make(chan error, 1)
	go func() { // as a commit does that was in progress
		_, err := db.Begin(false)
		begun <- err
	}()
	select {
	case err := <-begun:
		require.Error(t, err, "bbolt was closed")
	case <-time.After(10 * time.Second):
		require.FailNow(t, "bbolt holds a lock that nobody will give back")
	}
}

// overwrite puts noise on the page of a running store that holds a text.
func overwrite(t *testing.T, s *Store, text string) {
	b, err := os.ReadFile(s.path)
	require.NoError(t, err)
	f, err := os.OpenFile(s.path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	found := false
	for page := 2; page < len(b)/testPage; page++ {
		p := b[page*testPage:][:testPage]
		if h := parseHeader(p); h.flags != leafFlag || !contains(p, text) {
			continue
		}
		found = true
		noise(p, uint64(page))
		_, err = f.WriteAt(p, int64(page*testPage))
		require.NoError(t, err)
	}
	require.True(t, found)
}

func contains(b []byte, text string) bool {
	for i := 0; i+len(text) <= len(b); i++ {
		if string(b[i:i+len(text)]) == text {
			return true
		}
	}
	return false
}

func TestAPageDamagedUnderTheStoreHarmsItsEntitiesAlone(t *testing.T) {
	s := tempStore(t)
	var units []persist.Unit
	for i := range 60 {
		units = append(units, persist.Unit{Key: rooms(fmt.Sprintf("r%02d", i)), Record: record(1, fmt.Sprintf("<r%02d>%200d", i, i))})
	}
	o := mustCommit(t, s, units...)
	overwrite(t, s, "<r05>")

	_, err := s.Load(ctx, rooms("r05"))
	require.ErrorIs(t, err, snapshot.ErrCorrupt)
	require.ErrorContains(t, err, "rooms/r05")
	require.ErrorContains(t, err, s.path)
	require.Contains(t, state(t, s, rooms("r55")), "<r55>")
	_, err = s.List(ctx, "rooms", persist.ListOptions{})
	require.ErrorIs(t, err, snapshot.ErrCorrupt)

	got, err := s.Commit(ctx, []persist.Unit{step(rooms("r05"), o[5].Life, 1, "new"), step(rooms("r55"), o[55].Life, 1, "new")})
	require.NoError(t, err)
	require.ErrorIs(t, got[0].Err, persist.ErrInvalid)
	require.ErrorIs(t, got[0].Err, ErrDamaged)
	require.NoError(t, got[1].Err)
	require.Equal(t, "new", state(t, s, rooms("r55")))

	_, err = s.Commit(ctx, []persist.Unit{{Key: rooms("r05"), Delete: true, Force: true}})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, err = Open(s.path, Config{VerifyFirst: true})
	require.ErrorIs(t, err, ErrDamaged)
}

func TestDamageThatEveryCommitMeetsClosesTheStore(t *testing.T) {
	s := tempStore(t)
	o := mustCommit(t, s, create(rooms("a"), "A"), create(rooms("b"), strings.Repeat("long", 2000)))
	for r := uint64(1); r < 40; r++ {
		mustCommit(t, s, persist.Unit{Key: rooms("a"), Life: o[0].Life, Expect: r, Record: record(r+1, "A"),
			Changes: []persist.Change{{Revision: r + 1, Type: "changed", Data: []byte("<log>" + strings.Repeat("x", 300))}}})
	}
	overwrite(t, s, "<log>")
	_, err := s.Commit(ctx, []persist.Unit{step(rooms("b"), o[1].Life, 1, "B2"), create(rooms("c"), "C")})
	require.ErrorIs(t, err, persist.ErrUnavailable, "nothing was done, and nobody's data is at fault")
	require.NotErrorIs(t, err, persist.ErrInvalid, "halving the group would not help")
	require.ErrorIs(t, err, ErrDamaged)
	_, err = s.Load(ctx, rooms("b"))
	require.ErrorIs(t, err, persist.ErrUnavailable)
	err = s.Reopen(ctx)
	require.ErrorIs(t, err, persist.ErrUnavailable)
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "page ")
}

func TestADamagedPageMetWhileACommitIsWrittenHarmsItsEntitiesAlone(t *testing.T) {
	s := tempStore(t)
	var units []persist.Unit
	for i := range 60 {
		units = append(units, persist.Unit{Key: rooms(fmt.Sprintf("r%02d", i)), Record: record(1, fmt.Sprintf("<r%02d>%300d", i, i))})
	}
	o := mustCommit(t, s, units...)
	overwrite(t, s, "<r20>")
	// Deletions leave a page so empty that bbolt wants to join it with the one
	// beside it, which is damaged; that happens while it commits.
	refused := 0
	for i := range 60 {
		k := rooms(fmt.Sprintf("r%02d", i))
		got, err := s.Commit(ctx, []persist.Unit{{Key: k, Life: o[i].Life, Expect: 1, Delete: true}})
		require.NotErrorIs(t, err, persist.ErrUnknown)
		require.NotErrorIs(t, err, persist.ErrUnavailable, "the store serves on")
		if err != nil {
			require.ErrorIs(t, err, persist.ErrInvalid)
			require.ErrorIs(t, err, ErrDamaged)
			require.Contains(t, state(t, s, k), "<r", "it is as it was")
			refused++
			continue
		}
		if got[0].Err != nil {
			require.ErrorIs(t, got[0].Err, ErrDamaged)
			continue
		}
		// The damaged page is now the one that would have its key, if any had.
		_, err = s.Load(ctx, k)
		require.True(t, errors.Is(err, persist.ErrNotFound) || errors.Is(err, snapshot.ErrCorrupt), "%v", err)
	}
	require.NotZero(t, refused, "no commit met the page while it was written")
	mustCommit(t, s, create(persist.Key{Pod: "other", Name: "x"}, "works"))
}

// failSync makes fdatasync of one descriptor fail with EIO in this process, for
// good.
func failSync(fd int) error {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	skipUnless := func(value uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: skip}
	}
	ret := func(value uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value} }
	filter := []unix.SockFilter{
		load(0), // the number of the call
		skipUnless(unix.SYS_FDATASYNC, 3),
		load(16), // its first argument, where bytes are little endian
		skipUnless(uint32(fd), 1),
		ret(unix.SECCOMP_RET_ERRNO | uint32(syscall.EIO)),
		ret(unix.SECCOMP_RET_ALLOW),
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, errno := syscall.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}

// plays are what children do on Linux, with a path.
func plays() map[string]func(path string) error {
	opened := func(play func(s *Store) error) func(path string) error {
		return func(path string) error {
			s, err := Open(path, Config{})
			if err != nil {
				return err
			}
			return errors.Join(play(s), s.Close())
		}
	}
	return map[string]func(path string) error{
		"failsync":  opened(playFailingSync),
		"sizelimit": opened(playSizeLimit),
		"smalldisk": playSmallDisk,
		"addresses": playFewAddresses,
	}
}

// playFailingSync is what the child of the next test does.
func playFailingSync(s *Store) error {
	if _, err := s.Commit(ctx, []persist.Unit{create(rooms("a"), "A")}); err != nil {
		return err
	}
	fd := int(s.file.Fd())
	if err := failSync(fd); err != nil {
		fmt.Println("no filter:", err)
		return nil
	}
	_, err := s.Commit(ctx, []persist.Unit{create(rooms("b"), "B")})
	if !errors.Is(err, persist.ErrUnknown) || !errors.Is(err, syscall.EIO) {
		return fmt.Errorf("commit whose sync fails: %w", err)
	}
	if _, err := s.Load(ctx, rooms("a")); !errors.Is(err, persist.ErrUnavailable) {
		return fmt.Errorf("load from a broken store: %w", err)
	}
	// The descriptor gets the same number again, and its syncs fail too.
	if err := s.Reopen(ctx); !errors.Is(err, persist.ErrUnavailable) || !errors.Is(err, syscall.EIO) {
		return fmt.Errorf("reopen whose sync fails: %w", err)
	}
	for held := -1; held < fd; { // from now on the numbers are others
		if held, err = syscall.Open(os.DevNull, syscall.O_RDONLY, 0); err != nil {
			return err
		}
	}
	if err := s.Reopen(ctx); err != nil {
		return fmt.Errorf("reopen when the fault is gone: %w", err)
	}
	r, err := s.Load(ctx, rooms("a"))
	if err != nil || string(r.State) != "A" {
		return fmt.Errorf("load what was acknowledged: %q, %w", r.State, err)
	}
	if _, err := s.Commit(ctx, []persist.Unit{step(rooms("a"), r.Life, 1, "A2")}); err != nil {
		return err
	}
	fmt.Println("healed")
	return nil
}

func TestAFailedSyncIsUnknownUntilReopened(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("the filter of system calls is written for amd64 and arm64")
	}
	path := filepath.Join(t.TempDir(), "test.db")
	out, err := process(t, "failsync", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
	if contains(out, "no filter") {
		t.Skipf("system calls cannot be filtered here: %s", out)
	}
	require.Contains(t, string(out), "healed")
	s := mustOpen(t, path, Config{})
	require.Equal(t, "A2", state(t, s, rooms("a")))
	require.NoError(t, s.Close())
}
