package actortest

import (
	"fmt"
	"time"
)

// traced is how many of the last choices are kept to be read.
const traced = 4096

// trace records what was chosen.
type trace struct {
	hash  uint64
	steps uint64
	last  []choice // a ring
}

type choice struct {
	at    time.Duration // since the start
	kind  itemKind
	name  string // the actor's
	which int
	of    int
}

func newTrace() trace { return trace{hash: 14695981039346656037} }

func (t *trace) note(it item, which, of int, now time.Time) {
	c := choice{at: now.Sub(epoch()), kind: it.kind, which: which, of: of}
	if it.kind == runTurn {
		c.name = it.task.Name()
	}
	t.mix(uint64(c.at))
	t.mix(uint64(c.kind))
	t.mix(uint64(which)<<32 | uint64(of))
	for i := range len(c.name) {
		t.mix(uint64(c.name[i]))
	}
	if len(t.last) < traced {
		t.last = append(t.last, c)
	} else {
		t.last[t.steps%traced] = c
	}
	t.steps++
}

// mix is FNV-1a on words.
func (t *trace) mix(x uint64) { t.hash = (t.hash ^ x) * 1099511628211 }

// Hash is a digest of all choices so far and what they were about: the same
// seed and the same program give the same.
func (s *Seeded) Hash() uint64 { return s.trace.hash }

// Steps is how many things have been run.
func (s *Seeded) Steps() uint64 { return s.trace.steps }

// Trace returns the last choices, at most 4,096, to be read when a seed fails:
// the virtual time since the start, what ran, and which of how many it was.
func (s *Seeded) Trace() []string {
	t := &s.trace
	lines := make([]string, 0, len(t.last))
	for i := range t.last {
		c := t.last[i]
		if t.steps > traced {
			c = t.last[(t.steps+uint64(i))%traced]
		}
		lines = append(lines, fmt.Sprintf("%v %v %s (%d of %d)", c.at, c.kind, c.name, c.which+1, c.of))
	}
	return lines
}
