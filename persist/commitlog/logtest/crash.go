package logtest

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// Crash is the end of the machine. It returns the disk that the next process
// finds: what was synced and any part of what was not. A file that was never synced
// may be missing. What a write has done is there or not for each of its sectors,
// and so is what it made the file longer by. From then on everything that is called of d fails with ErrCrashed.
func (d *Disk) Crash(rng *rand.Rand) *Disk {
	return d.die(func(c *content) *content { return c.crash(rng) })
}

// Kill is the end of the process alone. It returns the disk that the next
// process finds: the same, in which all that was written can be read, also what
// was not synced and what the next Crash may take away. From then on everything
// that is called of d fails with ErrCrashed.
func (d *Disk) Kill() *Disk {
	return d.die(func(c *content) *content { return c })
}

func (d *Disk) die(left func(*content) *content) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = true
	next := New()
	next.Full = d.Full
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		if c := left(d.files[name]); c != nil {
			next.files[name] = c
		}
	}
	return next
}

// Copy returns a disk of its own that has what d shows, all of it durable.
func (d *Disk) Copy() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := New()
	next.Full = d.Full
	for name, c := range d.files {
		next.files[name] = settled(bytes.Clone(c.shown))
	}
	return next
}

// Content is what a file shows; nil if it is missing.
func (d *Disk) Content(name string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.files[name]; c != nil {
		return bytes.Clone(c.shown)
	}
	return nil
}

// Put makes bytes the content of a file, durably.
func (d *Disk) Put(name string, b []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[name] = settled(bytes.Clone(b))
}

// Remove takes a file away.
func (d *Disk) Remove(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.files, name)
}

// Flip turns a bit of a file over, in what is shown and in what is durable. It
// panics when the file has no such byte.
func (d *Disk) Flip(name string, offset int64, bit uint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.files[name]
	if c == nil || offset >= int64(len(c.shown)) {
		panic(fmt.Sprintf("%s has no byte %d", name, offset))
	}
	c.shown[offset] ^= 1 << (bit % 8)
	if offset < int64(len(c.kept)) {
		c.kept[offset] ^= 1 << (bit % 8)
	}
}

// Truncate cuts a file off, durably.
func (d *Disk) Truncate(name string, size int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.files[name]; c != nil && size < int64(len(c.shown)) {
		d.files[name] = settled(bytes.Clone(c.shown[:size]))
	}
}
