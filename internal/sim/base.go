package sim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/bolt"
	"github.com/twinsrv/twinsrv/persist/persisttest"
)

// inMemory is a base whose records can be damaged.
type inMemory struct{ *persisttest.Memory }

func (m inMemory) reopened() (base, error) { return inMemory{m.Again()}, nil }
func (m inMemory) discard()                {}

// damage makes a record unreadable, where the base can do that.
func (d *disk) damage(key persist.Key) (damaged bool) {
	m, can := d.damageable()
	if can {
		m.Damage(key)
	}
	return can
}

// damageable is what can be damaged, with all of a commit log in it.
func (d *disk) damageable() (m inMemory, can bool) {
	b := d.base
	if l, ok := b.(*withLog); ok {
		if l.Fold(context.Background()) != nil {
			return m, false
		}
		b = l.behind
	}
	m, can = b.(inMemory)
	return m, can
}

// inFile is a base that is a bbolt file: what bolt makes of units, changes and
// rows is then part of what is simulated, and so is opening what it left. The
// file itself is real, since bbolt maps it into memory; a crash comes between
// its transactions.
type inFile struct {
	*bolt.Store
	path string
}

func newFile() (base, error) {
	dir, err := os.MkdirTemp("", "twinsrv-sim")
	if err != nil {
		return nil, fmt.Errorf("make a folder for a simulated disk: %w", err)
	}
	return openFile(filepath.Join(dir, "bolt"))
}

func openFile(path string) (base, error) {
	s, err := bolt.Open(path, bolt.Config{VerifyFirst: true, CommitLog: true}) // no goroutine beside the simulation's
	if err != nil {
		return nil, err
	}
	return inFile{s, path}, nil
}

func (f inFile) reopened() (base, error) {
	if err := f.Close(); err != nil {
		return nil, err
	}
	return openFile(f.path)
}

func (f inFile) discard() {
	_ = f.Close()
	_ = os.RemoveAll(filepath.Dir(f.path))
}
