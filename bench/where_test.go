package main

import (
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
)

// frames makes a sample of functions, the innermost first.
func frames(names ...string) *profile.Sample {
	s := &profile.Sample{}
	for _, name := range names {
		s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
	}
	return s
}

func TestTheInnermostStageHasTheTime(t *testing.T) {
	all := stages()
	const module = "github.com/twinsrv/twinsrv/"
	for want, s := range map[string]*profile.Sample{
		"encode": frames("runtime.memmove", module+"snapshot.(*msgpackCodec).Append", module+"entity.(*activation).turn", module+"actor.(*worker).loop"),
		"turn":   frames("runtime.mallocgc", module+"entity.(*activation).turn", module+"actor.(*worker).loop"),
		"log":    frames("syscall.Fdatasync", module+"persist/commitlog.(*Store).Commit", module+"persist.(*Committer).run"),
		"fold":   frames("syscall.Pwrite", module+"persist/bolt.(*Store).Fold", module+"persist/commitlog.(*Store).background"),
		"gc":     frames("runtime.scanobject", "runtime.gcBgMarkWorker"),
		"other":  frames("runtime.nothing"),
	} {
		require.Equal(t, want, stageOf(all, s))
	}
}
