package commitlog_test

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/persist"
)

// image is all that can be read from a store, a line for each thing.
func image(s persist.PersistenceService, page int) (lines []string, err error) {
	defer func() { lines = slices.Clip(lines) }()
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	position, err := s.Position(ctx)
	if err != nil {
		return nil, err
	}
	add("position %d", position)
	pods, err := s.Pods(ctx)
	if err != nil {
		return nil, err
	}
	add("pods %q", pods)
	keys := map[persist.Key]bool{}
	for _, pod := range pods {
		for after := ""; ; {
			p, err := s.List(ctx, pod, persist.ListOptions{After: after, Limit: page})
			if err != nil {
				return nil, err
			}
			for _, it := range p.Items {
				k := persist.Key{Pod: pod, Name: it.Name}
				keys[k], after = true, it.Name
				r, err := s.Load(ctx, k)
				add("%s listed %s loaded %s %v", k, describe(it.Record), describe(r), err)
			}
			if !p.More {
				break
			}
		}
	}
	for after := uint64(0); ; {
		log, err := s.Log(ctx, after, page)
		if err != nil {
			return nil, err
		}
		for i := range log {
			add("log %s", describeChange(&log[i]))
			keys[log[i].Key], after = true, log[i].Position
		}
		if len(log) < page {
			break
		}
	}
	for _, kind := range []string{"", "inbox", "outbox"} {
		for after := (*persist.Row)(nil); ; {
			rows, err := s.Rows(ctx, kind, after, page)
			if err != nil {
				return nil, err
			}
			for i := range rows {
				add("rows %q %s", kind, describeRow(&rows[i]))
				keys[rows[i].Key] = true
			}
			if len(rows) < page {
				break
			}
			after = &rows[len(rows)-1]
		}
	}
	for _, k := range sorted(keys) {
		more, err := imageOf(s, k)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

// imageOf is what is read of one entity.
func imageOf(s persist.PersistenceService, k persist.Key) (lines []string, err error) {
	changes, err := s.Changes(ctx, k, 0, 0, 10000)
	if err != nil {
		return nil, err
	}
	for i := range changes {
		lines = append(lines, fmt.Sprintf("%s change %s", k, describeChange(&changes[i])))
	}
	if len(changes) > 1 {
		c := &changes[len(changes)/2]
		some, err := s.Changes(ctx, k, c.Life, c.Revision, 1)
		if err != nil {
			return nil, err
		}
		for i := range some {
			lines = append(lines, fmt.Sprintf("%s from there %s", k, describeChange(&some[i])))
		}
	}
	rows, err := s.RowsOf(ctx, k)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		lines = append(lines, fmt.Sprintf("%s row %s", k, describeRow(&rows[i])))
	}
	return lines, nil
}

func sorted(keys map[persist.Key]bool) (all []persist.Key) {
	for k := range keys {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b persist.Key) int { return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Name, b.Name)) })
	return all
}

func describe(r record) string {
	return fmt.Sprintf("life %d revision %d reserved %d %s schema %d %s %s", r.Life, r.Revision, r.Reserved, stamp(r.Changed), r.Schema, r.Codec, brief(r.State))
}

func describeChange(c *persist.Change) string {
	return fmt.Sprintf("%d %s life %d revision %d %s %s schema %d %s %s event %v %v", c.Position, c.Key, c.Life, c.Revision, stamp(c.Time), c.Type, c.Schema, c.Codec, brief(c.Data), c.Event, c.Err)
}

func describeRow(r *persist.Row) string {
	return fmt.Sprintf("%s %s %s %s nothing %v %v", r.Kind, r.Key, r.ID, brief(r.Value), r.Value == nil, r.Err)
}

// stamp tells apart what == on times does: an instant has one form.
func stamp(t time.Time) string { return t.String() }

func brief(b []byte) string {
	if len(b) > 40 {
		return fmt.Sprintf("%d bytes %x", len(b), sha256.Sum256(b))
	}
	return fmt.Sprintf("%q", b)
}
