package sim

import (
	"context"
	"errors"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
)

// checkStore looks whether what the store holds fits together, and whether a copy
// of it is the same.
func (r *run) checkStore() {
	ctx := context.Background()
	report, err := persist.Check(ctx, r.disk.base, persist.CheckOptions{Pods: []string{keepers, ledgers}})
	if err != nil {
		r.wrong("the store cannot be checked: %v", err)
	}
	whole := len(r.damaged) == 0
	for _, p := range report.Problems {
		if whole {
			r.wrong("the store is not sound: %+v", p)
		}
	}
	// A copy that fails half-way is gone on with.
	to := persisttest.NewFaultStore(persisttest.NewMemory())
	restore := to.OnImports(errOnPurpose, true)
	_, err = persist.Copy(ctx, r.disk.base, to, persist.CopyOptions{SkipUnreadable: !whole})
	restore()
	if !errors.Is(err, errOnPurpose) {
		r.wrong("the destination of the copy failed, and it says: %v", err)
	}
	report2, err := persist.Copy(ctx, r.disk.base, to, persist.CopyOptions{SkipUnreadable: !whole})
	if err != nil || whole && report2.SkippedCount > 0 {
		r.wrong("the store cannot be copied: %v, %+v", err, report2)
	}
	r.checkDamage(ctx)
}
