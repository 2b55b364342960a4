package server_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// readOnly lets nothing be written to a folder until mend is called.
func readOnly(t *testing.T, dir string) (mend func()) {
	t.Helper()
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		t.Skip("the test may not mount: ", err)
	}
	gone := false
	mend = func() {
		if !gone {
			gone = true
			require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH))
		}
	}
	t.Cleanup(mend)
	require.NoError(t, syscall.Mount("", dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	return mend
}

// The check writes nothing to a store that was stopped in order; where it would
// have to, it says what to do.
func TestCheckOfWhatCannotBeWritten(t *testing.T) {
	data, mendRecord := damagedStore(t)
	mend := readOnly(t, data)
	code, said, stderr := command(t, "store", "check", "--data", data)
	require.Equal(t, 1, code)
	require.Contains(t, said, "  unreadable record: docs/bad one: ", stderr)
	saved := "bolt:" + filepath.Join(t.TempDir(), "saved")
	succeeds(t, "store", "copy", "--skip-unreadable", "bolt:"+data, saved)
	require.Contains(t, fails(t, "store", "compact", "--data", data), "copy all of its folder")
	mend()
	mendRecord()

	page := filepath.Join(data, "twinsrv.db")
	whole, err := os.ReadFile(page)
	require.NoError(t, err)
	mend = readOnly(t, data)
	require.Contains(t, succeeds(t, "store", "check", "--data", data), "everything can be read")
	mend()
	after, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Equal(t, whole, after)

	p := start(t, data)
	p.must(200, "PUT", "/v1/pods/docs/entities/whole/state", `{"text":"later"}`)
	p.kill()
	mend = readOnly(t, data)
	require.Contains(t, fails(t, "store", "check", "--data", data), "stands in its commit log: copy all of its folder")
	mend()

	folder := filepath.Join(t.TempDir(), "twins")
	p = startWith(t, "--store", "json:"+folder)
	p.must(201, "PUT", "/v1/pods/docs", `{"type":"document"}`)
	p.terminate()
	readOnly(t, folder)
	require.Contains(t, fails(t, "store", "check", "--store", "json:"+folder), "copy all of its folder")
}
