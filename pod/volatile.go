package pod

import (
	"context"
	"fmt"
	"sync"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/memory"
)

// volatileKeeps is how many changes the journal of the volatile pods keeps.
const volatileKeeps = 10_000

// volatileStore is where the entities of volatile pods are kept: in memory,
// behind a committer of its own, made when the first such pod is. So they
// behave as all others do, until the process ends.
type volatileStore struct {
	mu        sync.Mutex
	store     *memory.Store
	committer *persist.Committer
	hub       hub
}

// committerOf returns the way into the store of a pod's entities.
func (p *Pods) committerOf(d Definition) *persist.Committer {
	if d.Durability != volatileText {
		return p.committer
	}
	v := &p.volatile
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.committer == nil {
		// Lives count on from the time, so that none is given again after a
		// restart; the microseconds of centuries fit the numbers of JSON.
		first := uint64(max(p.sys.Now().UnixMicro(), 0))
		v.store = memory.Open(memory.Config{FirstPosition: first})
		cfg := p.cfg.Committer
		cfg.KeepChanges = volatileKeeps
		v.committer = persist.NewCommitter(p.sys, v.store, cfg)
		v.hub.attach(v.committer, first)
	}
	return v.committer
}

func (v *volatileStore) close(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.committer == nil {
		return nil
	}
	if err := v.committer.Close(ctx); err != nil {
		return err
	}
	return v.store.Close()
}

// sameStore refuses a definition that would take a pod away from the store that
// its entities are in.
func (p *Pod) sameStore(spec *entity.Spec) error {
	def := p.def.Load()
	if def.damaged != nil || (def.Durability == volatileText) == spec.Durability.IsVolatile() {
		return nil
	}
	return fmt.Errorf("%w: %s has the durability %s and cannot have %s, whose entities are in another store; use a new name, or delete the pod first",
		ErrExists, p.name, def.Durability, durabilityText(spec.Durability))
}
