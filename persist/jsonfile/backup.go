package jsonfile

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/twinsrv/twinsrv/persist"
)

// Backup implements persist.Backuper. It writes a tar file of the folder, which
// Restore turns into a folder again, and which any tar program unpacks into one
// that Open takes.
//
// Entities' files are copied while commits go on, so some are newer than others;
// the journal, copied last and from before the first of them, brings all of them
// to one moment when the copy is opened: the moment at which the last entity was
// copied. Damaged files are copied as they are. Until it ends no part of the
// journal is removed, so a slow reader makes the journal grow, and nothing else.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	if err := noRoom(s.Flush(ctx)); errors.Is(err, persist.ErrNoRoom) {
		return fmt.Errorf("back up %s: %w: its files are not up to date: %w", s.dir, persist.ErrUnavailable, err)
	} else if err != nil {
		return err
	}
	s.flushing.Lock()
	s.pins++
	s.flushing.Unlock()
	defer func() {
		s.flushing.Lock()
		s.pins--
		s.flushing.Unlock()
	}()
	s.noting.Lock()
	m := *s.note
	s.noting.Unlock()
	out := tar.NewWriter(w)
	if err := s.backupPods(ctx, out); err != nil {
		return fmt.Errorf("back up %s: %w", s.dir, err)
	}
	if err := s.backupJournal(ctx, out, &m); err != nil {
		return fmt.Errorf("back up %s: %w", s.dir, err)
	}
	text, err := m.encode()
	if err != nil {
		return err
	}
	// It comes last, so that a backup that was cut is none.
	if err := put(out, manifestName, text); err != nil {
		return err
	}
	return out.Close()
}

func put(out *tar.Writer, name string, content []byte) error {
	if err := out.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err := out.Write(content)
	return err
}

func (s *Store) backupPods(ctx context.Context, out *tar.Writer) error {
	root := filepath.Join(s.dir, podsName)
	pods, err := s.files.ReadDir(root)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if !pod.IsDir() {
			if err := s.backupFile(ctx, out, podsName, pod.Name()); err != nil {
				return err
			}
			continue
		}
		entries, err := s.files.ReadDir(filepath.Join(root, pod.Name()))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := s.backupFile(ctx, out, path.Join(podsName, pod.Name()), e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// backupFile copies one of the store's files, if it is one and still there: what
// was removed since the journal tells.
func (s *Store) backupFile(ctx context.Context, out *tar.Writer, folder, name string) error {
	if err := s.view(ctx, func(*index) error { return nil }); err != nil {
		return err
	}
	if name[0] == '.' || !strings.HasSuffix(name, fileEnd) && !strings.HasSuffix(name, nameEnd) {
		return nil
	}
	content, err := s.files.ReadFile(filepath.Join(s.dir, filepath.FromSlash(folder), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return put(out, path.Join(folder, name), content)
}

// backupJournal copies the journal up to now and makes m name it.
func (s *Store) backupJournal(ctx context.Context, out *tar.Writer, m *manifest) error {
	s.noting.Lock()
	m.Segments = s.note.Segments
	s.noting.Unlock()
	var end place
	if err := s.view(ctx, func(x *index) error { end = x.end; return nil }); err != nil {
		return err
	}
	for i, n := range m.Segments {
		content, err := s.files.ReadFile(s.segmentPath(n.Name))
		if err != nil {
			return err
		}
		if n.Name == end.Segment {
			content = content[:end.Offset]
		}
		if err := put(out, path.Join(journalName, n.Name), content); err != nil {
			return err
		}
		if n.Name == end.Segment {
			m.Segments = append([]segmentNote(nil), m.Segments[:i+1]...)
			m.Segments[i].Size = 0
			return nil
		}
	}
	return fmt.Errorf("%w: the journal's last segment %s is not named", persist.ErrUnavailable, end.Segment)
}

// Restore makes the folder dir of what Backup wrote. It refuses a folder that
// has something in it. The folder is there only if all of the backup was read,
// opened as a store and is durable.
func Restore(dir string, r io.Reader) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s: it has something in it: restore into a new folder", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), ".restoring-")
	if err != nil {
		return err
	}
	err = restore(temp, r)
	if err == nil {
		err = os.Rename(temp, dir)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("restore %s: %w", dir, err), os.RemoveAll(temp))
	}
	return disk{}.SyncDir(filepath.Dir(filepath.Clean(dir)))
}

func restore(dir string, r io.Reader) error {
	in := tar.NewReader(r)
	folders := map[string]bool{dir: true}
	whole := false
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if !ours(h.Name) {
			return fmt.Errorf("%w: the backup has a file %q", ErrFormat, h.Name)
		}
		if err := extract(dir, h.Name, in, folders); err != nil {
			return err
		}
		whole = h.Name == manifestName
	}
	if !whole {
		return fmt.Errorf("%w: the backup was cut: its last file is not %s", ErrDamaged, manifestName)
	}
	for _, name := range []string{podsName, journalName} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	for folder := range folders {
		if err := (disk{}).SyncDir(folder); err != nil {
			return err
		}
	}
	s, err := Open(dir, Config{Flush: -1})
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	return os.Remove(filepath.Join(dir, lockName))
}

// ours says whether a path in a backup is one that Backup writes.
func ours(name string) bool {
	parts := strings.Split(name, "/")
	for _, p := range parts {
		if p == "" || p[0] == '.' || strings.ContainsAny(p, `\:`) {
			return false
		}
	}
	last := parts[len(parts)-1]
	switch {
	case name == manifestName:
		return true
	case len(parts) == 2 && parts[0] == journalName:
		return strings.HasSuffix(last, segmentEnd)
	case parts[0] == podsName && (len(parts) == 2 || len(parts) == 3):
		return strings.HasSuffix(last, nameEnd) || len(parts) == 3 && strings.HasSuffix(last, fileEnd)
	}
	return false
}

func extract(dir, name string, r io.Reader, folders map[string]bool) error {
	to := filepath.Join(dir, filepath.FromSlash(name))
	for folder := filepath.Dir(to); !folders[folder]; folder = filepath.Dir(folder) {
		folders[folder] = true
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
