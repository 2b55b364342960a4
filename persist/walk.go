package persist

import (
	"context"
	"fmt"
)

// walkPods calls fn with the items of every pod, page by page, in the order of
// pods and names, behind a key.
func walkPods(ctx context.Context, s PersistenceService, after Key, fn func(pod string, items []Item) error) error {
	pods, err := s.Pods(ctx)
	if err != nil {
		return fmt.Errorf("read the names of the pods: %w", err)
	}
	for _, pod := range pods {
		if pod < after.Pod {
			continue
		}
		from := ""
		if pod == after.Pod {
			from = after.Name
		}
		if err := walkPod(ctx, s, pod, from, func(items []Item) error { return fn(pod, items) }); err != nil {
			return err
		}
	}
	return nil
}

// walkPod calls fn with the items of a pod behind a name.
func walkPod(ctx context.Context, s PersistenceService, pod, after string, fn func(items []Item) error) error {
	o := ListOptions{After: after, Limit: maxPage, MaxBytes: pageBytes}
	for {
		page, err := s.List(ctx, pod, o)
		if err != nil {
			return fmt.Errorf("list the pod %s behind %q: %w", pod, o.After, err)
		}
		if len(page.Items) > 0 {
			if err := fn(page.Items); err != nil {
				return err
			}
			o.After = page.Items[len(page.Items)-1].Name
		}
		if !page.More {
			return nil
		}
	}
}

// walkRows calls fn with all rows behind one, page by page.
func walkRows(ctx context.Context, s PersistenceService, after *Row, fn func(rows []Row) error) error {
	var pages pageSize
	for {
		limit := pages.limit()
		rows, err := s.Rows(ctx, "", after, limit)
		if err != nil {
			return fmt.Errorf("read the rows: %w", err)
		}
		if len(rows) > 0 {
			if err := fn(rows); err != nil {
				return err
			}
			last := rows[len(rows)-1]
			after = &Row{Kind: last.Kind, Key: last.Key, ID: last.ID}
		}
		if len(rows) < limit {
			return nil
		}
		pages.sawRows(rows)
	}
}

// walkLog calls fn with all changes behind a position, page by page.
func walkLog(ctx context.Context, s PersistenceService, after uint64, fn func(changes []Change) error) error {
	var pages pageSize
	for {
		limit := pages.limit()
		changes, err := s.Log(ctx, after, limit)
		if err != nil {
			return fmt.Errorf("read the journal behind position %d: %w", after, err)
		}
		if len(changes) > 0 {
			if err := fn(changes); err != nil {
				return err
			}
			next := changes[len(changes)-1].Position
			if next <= after {
				return fmt.Errorf("read the journal behind position %d: %w: the positions do not rise", after, errUnordered)
			}
			after = next
		}
		if len(changes) < limit {
			return nil
		}
		pages.saw(changes)
	}
}
