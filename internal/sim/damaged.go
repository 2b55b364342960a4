package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/snapshot"
)

// checkDamage damages a copy of the store, and looks whether what is wrong with
// it is found, all of it and nothing else, and is what another copy leaves out.
func (r *run) checkDamage(ctx context.Context) {
	rng := rand.New(rand.NewPCG(r.seed, 0x64616d61))
	if len(r.damaged) > 0 || rng.IntN(5) > 0 {
		return
	}
	to := persisttest.NewMemory()
	if _, err := persist.Copy(ctx, r.disk.base, to, persist.CopyOptions{}); err != nil {
		return // checkStore says so
	}
	unread, wrong := damageSome(ctx, to, rng)
	pages := 0
	report, err := persist.Check(ctx, to, persist.CheckOptions{Pods: []string{keepers, ledgers}, Progress: func(persist.CheckProgress) { pages++ }})
	found := map[string]bool{}
	for _, p := range report.Problems {
		found[placed(p)] = true
		if !strings.HasPrefix(p.String(), placed(p)) {
			r.wrong("the problem %s is described as %s", placed(p), p)
		}
	}
	want := slices.Concat(unread, wrong)
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(found)); err != nil || !slices.Equal(got, want) || report.OK() != (len(want) == 0) || pages == 0 {
		r.wrong("%q is wrong with the store, and the check of it finds %q (%v)", want, got, err)
	}

	_, err = persist.Copy(ctx, to, persisttest.NewMemory(), persist.CopyOptions{})
	if (err == nil) != (len(unread) == 0) {
		r.wrong("a store of which %q cannot be read is copied: %v", unread, err)
	}
	left, err := persist.Copy(ctx, to, persisttest.NewMemory(), persist.CopyOptions{SkipUnreadable: true, Progress: func(persist.CopyProgress) { pages++ }})
	var skipped []string
	for _, p := range left.Skipped {
		skipped = append(skipped, placed(p))
	}
	slices.Sort(skipped)
	slices.Sort(unread)
	if err != nil || !slices.Equal(skipped, unread) || left.SkippedCount != len(unread) {
		r.wrong("%q cannot be read, and a copy leaves out %q (%v)", unread, skipped, err)
	}
}

// placed says what is wrong with what.
func placed(p persist.Problem) string {
	text := fmt.Sprintf("%s: %s", p.Kind, p.Key)
	if p.Row != "" {
		text += " " + p.Row
	}
	if p.Position > 0 {
		text += fmt.Sprintf(" at position %d", p.Position)
	}
	return text
}

// damageSome makes parts of a store unreadable, and others senseless. It returns
// what Check must say of them.
func damageSome(ctx context.Context, to *persisttest.Memory, rng *rand.Rand) (unread, wrong []string) {
	rows, _ := to.Rows(ctx, "", nil, 1000)
	if len(rows) > 0 && rng.IntN(3) > 0 {
		row := rows[rng.IntN(len(rows))]
		to.DamageRow(row)
		unread = append(unread, placed(persist.Problem{Kind: persist.UnreadableRow, Key: row.Key, Row: row.Kind + " " + row.ID}))
	}
	log, _ := to.Log(ctx, 0, 1000)
	if len(log) > 0 && rng.IntN(3) > 0 {
		c := log[rng.IntN(len(log))]
		to.DamageChange(c)
		unread = append(unread, placed(persist.Problem{Kind: persist.UnreadableChange, Key: c.Key, Position: c.Position}))
	}
	page, _ := to.List(ctx, things, persist.ListOptions{})
	if len(page.Items) > 0 && rng.IntN(3) > 0 {
		key := persist.Key{Pod: things, Name: page.Items[rng.IntN(len(page.Items))].Name}
		if own, _ := to.RowsOf(ctx, key); len(own) == 0 { // else the copy leaves out its rows as well, readable or not
			to.Damage(key)
			unread = append(unread, placed(persist.Problem{Kind: persist.UnreadableRecord, Key: key}))
		}
	}
	if rng.IntN(2) == 0 {
		key := persist.Key{Pod: "nobodys", Name: "x"}
		_, _ = to.Commit(ctx, []persist.Unit{{Key: key, Record: &snapshot.Record{Revision: 1, Reserved: 1, Codec: "json", State: []byte("{}")}}})
		wrong = append(wrong, placed(persist.Problem{Kind: persist.OrphanedRecord, Key: key}))
	}
	return unread, wrong
}
