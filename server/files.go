package server

import (
	"io/fs"
	"os"
	"path/filepath"
)

// size is how many bytes the store's files have; 0 for a store without files.
func (t target) size() (n int64) {
	switch t.kind {
	case kindBolt:
		if info, err := os.Stat(t.boltPath()); err == nil {
			n = info.Size()
		}
	case kindJSON:
		_ = filepath.WalkDir(t.at, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if info, err := d.Info(); err == nil {
					n += info.Size()
				}
			}
			return nil // a file that went away has no size
		})
	}
	return n
}
