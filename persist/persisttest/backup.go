package persisttest

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"

	"github.com/twinsrv/twinsrv/persist"
)

// backupPage is how many things a part of a backup has.
const backupPage = 256

// Backup implements persist.Backuper: it writes what Restore reads. What is
// damaged fails it.
func (m *Memory) Backup(ctx context.Context, w io.Writer) error {
	return m.BackupTelling(ctx, w, func() {})
}

// BackupTelling implements persist.TellingBackuper.
func (m *Memory) BackupTelling(ctx context.Context, w io.Writer, begun func()) error {
	if _, err := m.store.Position(ctx); err != nil {
		return err
	}
	from := m.fork()
	begun()
	out := gob.NewEncoder(w)
	return errors.Join(
		backupRecords(ctx, from, out), backupChanges(ctx, from, out), backupRows(ctx, from, out), backupEnd(ctx, from, out))
}

func backupRecords(ctx context.Context, from *Memory, out *gob.Encoder) error {
	pods, err := from.Pods(ctx)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		for after, more := "", true; more; {
			page, err := from.List(ctx, pod, persist.ListOptions{After: after, Limit: backupPage})
			if err != nil {
				return err
			}
			var b persist.Batch
			for _, item := range page.Items {
				if item.Err != nil {
					return item.Err
				}
				b.Records = append(b.Records, persist.Stored{Key: persist.Key{Pod: pod, Name: item.Name}, Record: item.Record})
				after = item.Name
			}
			if err := out.Encode(&b); err != nil {
				return err
			}
			more = page.More
		}
	}
	return nil
}

func backupChanges(ctx context.Context, from *Memory, out *gob.Encoder) error {
	for after := uint64(0); ; {
		changes, err := from.Log(ctx, after, backupPage)
		if err != nil || len(changes) == 0 {
			return err
		}
		for _, c := range changes {
			if c.Err != nil {
				return c.Err
			}
			after = c.Position
		}
		if err := out.Encode(&persist.Batch{Changes: changes}); err != nil {
			return err
		}
	}
}

func backupRows(ctx context.Context, from *Memory, out *gob.Encoder) error {
	for after := (*persist.Row)(nil); ; {
		rows, err := from.Rows(ctx, "", after, backupPage)
		if err != nil || len(rows) == 0 {
			return err
		}
		for i := range rows {
			if rows[i].Err != nil {
				return rows[i].Err
			}
		}
		after = &rows[len(rows)-1]
		if err := out.Encode(&persist.Batch{Rows: rows}); err != nil {
			return err
		}
	}
}

func backupEnd(ctx context.Context, from *Memory, out *gob.Encoder) error {
	position, err := from.Position(ctx)
	if err != nil {
		return err
	}
	return out.Encode(&persist.Batch{Position: position})
}

// Restore returns a store with what Memory's (or CrashStore's) Backup wrote.
func Restore(ctx context.Context, r io.Reader) (*Memory, error) {
	m := NewMemory()
	in := gob.NewDecoder(r)
	for whole := false; ; {
		var b persist.Batch
		switch err := in.Decode(&b); {
		case errors.Is(err, io.EOF) && whole:
			return m, nil
		case err != nil:
			return nil, fmt.Errorf("read the backup: %w", err)
		}
		whole = len(b.Records)+len(b.Changes)+len(b.Rows) == 0
		if err := m.Import(ctx, b); err != nil {
			return nil, err
		}
	}
}
