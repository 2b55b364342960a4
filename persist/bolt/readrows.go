package bolt

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/twinsrv/twinsrv/persist"
)

// Rows implements persist.PersistenceService.
func (s *Store) Rows(ctx context.Context, kind string, after *persist.Row, limit int) ([]persist.Row, error) {
	limit = limitOr(limit)
	var prefix []byte
	if kind != "" {
		prefix = kindStart(kind)
	}
	if strings.IndexByte(kind, 0) >= 0 {
		limit = 0 // it would be read as a kind and a pod
	}
	seek := prefix
	if after != nil {
		of := kind
		if of == "" {
			of = after.Kind
		}
		seek = rowKey(of, after.Key, after.ID)
	}
	var rows []persist.Row
	err := s.scan(ctx, rowsBucket, seek, func(_ *bbolt.Tx, k, v []byte) (bool, error) {
		if !bytes.HasPrefix(k, prefix) || len(rows) >= limit {
			return false, nil
		}
		if after != nil && bytes.Equal(k, seek) {
			return true, nil
		}
		if row, ok := readRow(k, v); ok {
			rows = append(rows, row)
		}
		return len(rows) < limit, nil
	}, nil)
	if err != nil {
		return nil, unreadable("rows of kind "+kind, err)
	}
	return rows, nil
}

// RowsOf implements persist.PersistenceService. The rows are those of one
// moment.
func (s *Store) RowsOf(ctx context.Context, key persist.Key) ([]persist.Row, error) {
	if s.sound != nil {
		return s.rowsOfSound(ctx, key)
	}
	var rows []persist.Row
	err := s.view(ctx, func(tx *bbolt.Tx) error {
		if key.Check() != nil {
			return nil
		}
		c := tx.Bucket([]byte(rowsBucket)).Cursor()
		for _, kind := range kindsOf(tx) {
			prefix := rowsPrefix(kind, key)
			behind := append(bytes.Clone(prefix[:len(prefix)-1]), 1)
			if err := s.believe(tx, rowsBucket, span{from: prefix, before: behind}); err != nil {
				return err
			}
			for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
				if row, ok := readRow(k, v); ok {
					rows = append(rows, row)
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, unreadable(fmt.Sprintf("rows of %s", key), err)
	}
	return rows, nil
}

// kindsOf returns the kinds of rows that the file has or had, in their order.
func kindsOf(tx *bbolt.Tx) (kinds []string) {
	c := tx.Bucket([]byte(metaBucket)).Cursor()
	for k, _ := c.Seek([]byte(kindPrefix)); bytes.HasPrefix(k, []byte(kindPrefix)); k, _ = c.Next() {
		kinds = append(kinds, string(k[len(kindPrefix):]))
	}
	return kinds
}

// Pods implements persist.PersistenceService. It seeks from pod to pod.
func (s *Store) Pods(ctx context.Context) ([]string, error) {
	if s.sound != nil {
		return s.podsSound(ctx)
	}
	var pods []string
	err := s.view(ctx, func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte(recordsBucket)).Cursor()
		for seek := []byte(nil); ; {
			if err := s.believe(tx, recordsBucket, span{from: seek, most: 1}); err != nil {
				return err
			}
			k, _ := c.Seek(seek)
			if k == nil {
				return nil
			}
			pod, _, ok := bytes.Cut(k, []byte{0})
			if !ok { // damaged, in a file that was not verified
				seek = append(bytes.Clone(k), 0)
				continue
			}
			pods = append(pods, string(pod))
			seek = append(bytes.Clone(pod), 1)
		}
	})
	if err != nil {
		return nil, unreadable("pods", err)
	}
	return pods, nil
}

// Position implements persist.PersistenceService.
func (s *Store) Position(ctx context.Context) (p uint64, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		if s.sound != nil {
			p = s.next - 1 // nobody commits
			return nil
		}
		next, ok, err := getNumber(tx.Bucket([]byte(metaBucket)), nextKey)
		if err == nil && ok {
			p = next - 1
		}
		return err
	})
	if err != nil {
		return 0, unreadable("position", err)
	}
	return p, nil
}

// trimmedThrough returns the position up to which a change that is missing was
// trimmed. Programs that knew no events kept no such number: they trimmed
// everything before the first change that is left.
func trimmedThrough(tx *bbolt.Tx) (uint64, error) {
	n, _, err := getNumber(tx.Bucket([]byte(metaBucket)), trimmedKey)
	if err != nil {
		return 0, err
	}
	first, _ := tx.Bucket([]byte(logBucket)).Cursor().First()
	if len(first) != 8 {
		return ^uint64(0), nil
	}
	return max(n, positionOf(first)-1), nil
}
