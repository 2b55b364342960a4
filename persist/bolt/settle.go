package bolt

import (
	"fmt"
	"io"
)

// pageFile is what settling needs of a file.
type pageFile interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
}

// settle makes durable what a file says before anything new is written to it.
//
// After a failed sync of the meta page, the kernel may go on showing that page
// while the disk still has the older one, and a later sync succeeds without
// writing it: it counts as clean. bbolt would then reuse the pages which only
// the older meta needs, and a power loss would leave a file that points at
// overwritten pages. Writing the same bytes again makes the page dirty, and the
// sync that follows covers it. Everything that the meta refers to was synced
// before the meta was written.
func settle(f pageFile, m meta, path string) error {
	page := make([]byte, m.pageSize)
	at := int64(m.page) * m.pageSize
	if _, err := f.ReadAt(page, at); err != nil {
		return fmt.Errorf("read the newest meta page of %s: %w", path, err)
	}
	if _, err := f.WriteAt(page, at); err != nil {
		return fmt.Errorf("write the newest meta page of %s again: %w", path, err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
}
