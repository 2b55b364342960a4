//go:build !linux

package commitlog

import "os"

// datasync waits until a file's data is durable.
func datasync(f *os.File) error { return f.Sync() }
