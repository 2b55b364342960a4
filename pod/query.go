package pod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/twinsrv/twinsrv/filter"
)

var (
	// ErrCursor says that a Query.Cursor is not one that this query gave.
	ErrCursor = errors.New("no cursor of this query")
	// ErrTooManyGroups says that a query has more groups than MaxGroups, or that
	// the texts in them have more than MaxGroupBytes.
	ErrTooManyGroups = errors.New("too many groups")
)

// Query says which entities are looked for and what is told of them. The zero
// value asks for the first entities by name.
type Query struct {
	// Filter narrows the entities to those that match; nil is all.
	Filter *filter.Filter
	// Prefix, if not empty, narrows them to names that start with it.
	Prefix string
	// Select, if not empty, are the paths that Found.Selected has.
	Select []filter.Path
	// Sort orders what is found by the first path, then by the next. An entity
	// that has nothing at a path comes before those that have something, or
	// behind them when it is descending. What is equal, and everything when Sort
	// is empty, is in the order of pods and names; of texts, lists and objects the
	// first 1,024 bytes count.
	Sort []Order
	// Limit is the most entities that are found. 0 means 100; more than 1,000
	// are taken as 1,000. A page ends early when its states have 8 MiB, but has
	// one entity at least.
	Limit int
	// Cursor is Result.Next of the page before; empty starts at the first. An
	// entity that did not change between pages is on exactly one of them. The
	// query must be the same but for Select, Limit and Count, or ErrCursor
	// refuses it.
	Cursor string
	// Count asks for the number of all matches, on whatever page.
	Count bool
	// Group, if not nil, asks for groups in place of entities.
	Group *Group
}

// Order is one path to sort by.
type Order struct {
	Path       filter.Path
	Descending bool
}

// Found is an entity that a query found.
type Found struct {
	View View
	// Selected is an object with what Query.Select names, in the nesting of the
	// envelope; nil without it.
	Selected json.RawMessage
}

// Result is what a query found.
type Result struct {
	Items []Found
	// Next is the Query.Cursor of the next page; empty at the end.
	Next string
	// Count is the number of all matches when Query.Count asked for it, else 0.
	Count int
	// Groups are in the order of their values.
	Groups []GroupRow
	// Quarantined names entities that the query met and that cannot be read, at
	// most 100, and Unreadable says how many there were: they may match or not.
	// A page that is not sorted or counted meets those between its first and its
	// last name.
	Quarantined []Quarantined
	Unreadable  int
}

const (
	defaultFound     = 100
	mostFound        = 1000
	mostQuarantined  = 100
	lookAtContext    = 1 << 14 // steps, as filters count them, between two looks at the context
	entitySteps      = 64      // what an entity counts beside its filter's cost
	bytesPerStep     = 16      // of its state
	mostListed       = 1024    // entities of a chunk that is read from the store
	mostListedBytes  = 1 << 20 // and about its bytes
	mostFoundBytes   = 8 << 20 // of the states on a page
	firstListedExtra = 1       // one more than is shown says whether there is a next page
)

// Query finds entities of the pod as they are acknowledged: it sees every write
// that was acknowledged before the call, wakes nobody, and never blocks writers.
// It holds memory for what it returns and for one chunk of the store.
//
// It fails with ErrCursor, ErrTooManyGroups, filter.ErrTooCostly, the context's
// error, or persist.ErrUnavailable.
func (p *Pod) Query(ctx context.Context, q Query) (Result, error) {
	s, err := newSearch(ctx, q, false, []string{p.name})
	if err != nil {
		return Result{}, fmt.Errorf("query pod %s: %w", p.name, err)
	}
	if err := s.run(p); err != nil {
		return Result{}, fmt.Errorf("query pod %s: %w", p.name, err)
	}
	return s.result(), nil
}

// QueryAll is Query over several pods, those of the names or with nil all. It
// fails with ErrNoPod, too. Its cursors are not those of Pod.Query.
func (p *Pods) QueryAll(ctx context.Context, pods []string, q Query) (Result, error) {
	over, err := p.named(pods)
	if err != nil {
		return Result{}, err
	}
	if pods != nil { // as they were named is nothing to a cursor
		pods = names(over)
	}
	s, err := newSearch(ctx, q, true, pods)
	if err != nil {
		return Result{}, fmt.Errorf("query pods: %w", err)
	}
	for _, pod := range over {
		if err := s.run(pod); err != nil {
			return Result{}, fmt.Errorf("query pod %s: %w", pod.name, err)
		}
	}
	return s.result(), nil
}

func names(pods []*Pod) []string {
	out := make([]string, len(pods))
	for i, p := range pods {
		out[i] = p.name
	}
	return out
}

// named returns the pods of the names once each, by name.
func (p *Pods) named(names []string) ([]*Pod, error) {
	all := p.All()
	if names == nil {
		return all, nil
	}
	wanted := map[string]bool{}
	for _, n := range names {
		if _, err := p.Pod(n); err != nil {
			return nil, err
		}
		wanted[n] = true
	}
	out := all[:0]
	for _, pod := range all {
		if wanted[pod.name] {
			out = append(out, pod)
		}
	}
	return out, nil
}
