package jsonfile

import (
	"bytes"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
)

// filling is a disk whose files take no bytes while it is full.
type filling struct {
	fsys
	full *bool
}

func (d filling) Create(path string) (file, error) { return d.file(d.fsys.Create(path)) }
func (d filling) Open(path string) (file, error)   { return d.file(d.fsys.Open(path)) }

func (d filling) file(f file, err error) (file, error) {
	if err != nil {
		return nil, err
	}
	return fillingFile{f, d.full}, nil
}

type fillingFile struct {
	file
	full *bool
}

func (f fillingFile) WriteAt(b []byte, at int64) (int, error) {
	if *f.full {
		return 0, syscall.ENOSPC
	}
	return f.file.WriteAt(b, at)
}

// A full disk is told as such, also by Reopen for as long as it is, without a
// commit that tries it; reads go on, and so does the store once there is room.
func TestAFullDiskIsTold(t *testing.T) {
	full := false
	for name, cfg := range map[string]Config{
		"journal": {Flush: -1},
		"files":   {Flush: -1, MaxHeld: 1},
		"segment": {Flush: -1, segment: 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			cfg.files = filling{disk{}, &full}
			s := mustOpen(t, dir, cfg)
			o := mustCommit(t, s, create(rooms("a"), `"1"`))
			full = true
			for range 2 {
				_, err := s.Commit(ctx, []persist.Unit{create(rooms("b"), `"2"`)})
				require.ErrorIs(t, err, persist.ErrUnavailable)
				require.ErrorIs(t, err, persist.ErrNoRoom)
				err = s.Reopen(ctx)
				require.ErrorIs(t, err, persist.ErrUnavailable)
				require.ErrorIs(t, err, persist.ErrNoRoom)
				r, err := s.Load(ctx, rooms("a"))
				require.NoError(t, err)
				require.Equal(t, o[0].Life, r.Life)
			}
			err := s.Backup(ctx, io.Discard)
			require.ErrorIs(t, err, persist.ErrUnavailable)
			require.ErrorIs(t, err, persist.ErrNoRoom)
			full = false
			require.NoError(t, s.Reopen(ctx))
			mustCommit(t, s, create(rooms("b"), `"2"`))
			require.NoError(t, s.Reopen(ctx))
			require.NoError(t, s.Close())
			left, err := filepath.Glob(filepath.Join(dir, tempPrefix+"*"))
			require.NoError(t, err)
			require.Empty(t, left, strings.Join(left, " "))
			s = mustOpen(t, dir, Config{})
			_, err = s.Load(ctx, rooms("b"))
			require.NoError(t, err)
			require.NoError(t, s.Close())
		})
	}
}

// Nobody waits for a flush that is due. That such fail is logged once, and that
// they no longer do.
func TestFlushesThatFailAreLogged(t *testing.T) {
	var out bytes.Buffer
	told := func() string {
		defer out.Reset()
		return out.String()
	}
	full := false
	dir := t.TempDir()
	s := mustOpen(t, dir, Config{Flush: -1, files: filling{disk{}, &full}, Logger: slog.New(slog.NewTextHandler(&out, nil))})
	mustCommit(t, s, create(rooms("a"), `"1"`))
	full = true
	s.flushDue()
	line := told()
	require.Contains(t, line, "level=WARN")
	require.Contains(t, line, "store="+dir)
	require.Contains(t, line, syscall.ENOSPC.Error())
	s.flushDue()
	require.Empty(t, told(), "said before")
	full = false
	s.flushDue()
	require.Contains(t, told(), "level=INFO")
	s.flushDue()
	require.Empty(t, told())
	require.NoError(t, s.Close())
}
