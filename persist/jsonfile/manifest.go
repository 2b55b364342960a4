package jsonfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

const (
	manifestName = "store.json"
	lockName     = "lock"
	journalName  = "journal"
	podsName     = "pods"
	tempPrefix   = ".new-"
)

// manifest is store.json: what else belongs to the store.
type manifest struct {
	Format   int            `json:"format"`
	Segments []segmentNote  `json:"segments"`
	Flushed  place          `json:"flushed"`  // the entities' files show at least what stands before it
	Position uint64         `json:"position"` // the highest that was given there
	Records  map[string]int `json:"files"`    // how many files each pod had there
}

// segmentNote is one file of the journal; Size is 0 for the last one, which
// grows.
type segmentNote struct {
	Name string `json:"name"`
	Size int64  `json:"size,omitempty"`
}

// place is a point between two lines of the journal.
type place struct {
	Segment string `json:"segment"`
	Offset  int64  `json:"offset"`
	Seq     uint64 `json:"seq"` // of the line before it
}

func (m *manifest) encode() ([]byte, error) {
	b, err := marshal(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return nil, err
	}
	return seal(bytes.TrimSuffix(out.Bytes(), []byte("\n}"))), nil
}

// readManifest reads store.json; it returns nil when there is none.
func readManifest(files fsys, dir string) (*manifest, error) {
	path := filepath.Join(dir, manifestName)
	b, err := files.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	object, err := unseal(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w: restore the folder from a backup", path, ErrDamaged, err)
	}
	if newer := newerFormat(object); newer != nil {
		return nil, fmt.Errorf("%s: %w: %w: use a newer program", path, ErrFormat, newer)
	}
	m := &manifest{}
	if err := strict(object, m); err != nil {
		return nil, fmt.Errorf("%s: %w: %w: restore the folder from a backup", path, ErrDamaged, err)
	}
	return m, nil
}

// write makes the manifest durable.
func (m *manifest) write(files fsys, dir string) error {
	b, err := m.encode()
	if err != nil {
		return err
	}
	if err := replace(files, filepath.Join(dir, tempPrefix+manifestName), filepath.Join(dir, manifestName), b); err != nil {
		return err
	}
	return files.SyncDir(dir)
}
