package pod_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// TestCursorsBelongToTheirQuery: one of another query is refused, but for what a
// query may change from page to page; so is one of a listing.
func TestCursorsBelongToTheirQuery(t *testing.T) {
	w, p := twins(t, 1, persisttest.NewMemory(), pod.Config{})
	defer w.close()
	other, _, _, err := w.pods.Declare(bg, "attic", documentPod(""))
	w.must(err)
	for i := range 4 {
		w.merge(p, fmt.Sprint("n", i), entity.Merge{"v": i})
		w.merge(other, fmt.Sprint("n", i), entity.Merge{"v": i})
	}
	byV, f := []pod.Order{{Path: path(t, "state.v")}}, compiled(t, "state.v >= 0")
	for _, q := range []pod.Query{{}, {Sort: byV}, {Filter: f}, {Prefix: "n"}, {Sort: byV, Filter: f, Prefix: "n"}} {
		q.Limit = 2
		r, err := p.Query(bg, q)
		w.must(err)
		next := q
		next.Cursor = r.Next
		same := next
		same.Limit, same.Count, same.Select, same.Filter = 1, true, []filter.Path{path(t, "name")}, q.Filter
		found, err := p.Query(bg, same)
		w.must(err)
		require.Equal(t, []string{"n2"}, names(found))
		for what, edit := range map[string]func(*pod.Query){
			"filter": func(q *pod.Query) { q.Filter = compiled(t, "state.v >= 1") },
			"prefix": func(q *pod.Query) { q.Prefix += "n1" },
			"order":  func(q *pod.Query) { q.Sort = append(slices.Clone(q.Sort), pod.Order{Path: path(t, "name")}) },
			"list":   func(q *pod.Query) { q.Cursor = "bjE" }, // n1, as listings write it
			"empty":  func(q *pod.Query) { q.Cursor = "q." },
			"mark":   func(q *pod.Query) { q.Cursor = strings.TrimPrefix(q.Cursor, "q.") },
			"text":   func(q *pod.Query) { q.Cursor += "%" },
		} {
			odd := next
			edit(&odd)
			_, err := p.Query(bg, odd)
			require.ErrorIs(t, err, pod.ErrCursor, what)
		}
		_, err = other.Query(bg, next)
		require.ErrorIs(t, err, pod.ErrCursor, "another pod")
		_, err = w.pods.QueryAll(bg, []string{"twins"}, next)
		require.ErrorIs(t, err, pod.ErrCursor, "over pods")
		r, err = w.pods.QueryAll(bg, []string{"twins", "attic"}, q)
		w.must(err)
		next.Cursor = r.Next
		_, err = p.Query(bg, next)
		require.ErrorIs(t, err, pod.ErrCursor, "of one pod")
		_, err = w.pods.QueryAll(bg, nil, next)
		require.ErrorIs(t, err, pod.ErrCursor, "over all")
		_, err = w.pods.QueryAll(bg, []string{"attic", "twins", "attic"}, next)
		w.must(err)
	}
}

// TestKeysOfLongTextsAreShort: what sorts by texts as large as states has short
// cursors, and pages with everything once.
func TestKeysOfLongTextsAreShort(t *testing.T) {
	for _, idle := range []time.Duration{-1, time.Millisecond} {
		w, p := twins(t, 1, persisttest.NewMemory(), pod.Config{IdleAfter: idle})
		var want []string
		for i := range 30 {
			name := fmt.Sprintf("n%02d", (i*7)%30)
			w.merge(p, name, entity.Merge{"v": strings.Repeat("x", 1100) + fmt.Sprint(i), "l": []any{strings.Repeat("y", 5000)}})
			want = append(want, name)
		}
		w.exec.RunFor(time.Second)
		slices.Sort(want)
		for _, sort := range []string{"state.v", "state.l", "state"} {
			for _, descending := range []bool{false, true} {
				q := pod.Query{Sort: []pod.Order{{Path: path(t, sort), Descending: descending}}, Limit: 7}
				var got []string
				for {
					r, err := p.Query(bg, q)
					w.must(err)
					got = append(got, names(r)...)
					require.Less(t, len(r.Next), 2000)
					if q.Cursor = r.Next; q.Cursor == "" {
						break
					}
				}
				if sort != "state" {
					require.Equal(t, want, got, "what begins alike is in the order of names")
				}
				require.ElementsMatch(t, want, got)
			}
		}
		w.close()
	}
}

// TestIndexOfLongTexts: an index has but the beginnings of long texts, and finds
// what a look at all finds.
func TestIndexOfLongTexts(t *testing.T) {
	w := emptyWorld(t, 1, persisttest.NewMemory(), pod.Config{})
	defer w.close()
	p, _, _, err := w.pods.Declare(bg, "twins", pod.Definition{Type: "document", Index: []string{"state.v"}})
	w.must(err)
	var texts []string
	for _, n := range []int{254, 255, 256, 257, 5000} {
		for _, end := range []string{"", "a", "b", "xa"} {
			texts = append(texts, strings.Repeat("x", n)+end)
		}
	}
	for i, text := range texts {
		w.merge(p, fmt.Sprint("n", i), entity.Merge{"v": text})
	}
	w.exec.RunFor(time.Second)
	require.Less(t, p.IndexBytes(), len(texts)*300)
	for _, text := range texts {
		for _, form := range []string{"state.v == %q", "state.v < %q", "state.v <= %q", "state.v > %q", "state.v >= %q", "state.v.startsWith(%q)"} {
			f := compiled(t, fmt.Sprintf(form, text))
			r, err := p.Query(bg, pod.Query{Filter: f, Limit: 1000})
			w.must(err)
			want, _ := scanned(t, p, f)
			require.Equal(t, want, names(r), "%.10s %d", form, len(text))
		}
	}
}

// TestGroupsOfLongTexts: what groups keep is bounded in bytes, too.
func TestGroupsOfLongTexts(t *testing.T) {
	w, p := twins(t, 1, persisttest.NewMemory(), pod.Config{})
	defer w.close()
	for i := range 12 {
		w.merge(p, fmt.Sprint("n", i), entity.Merge{"v": fmt.Sprint(i) + strings.Repeat("x", 800<<10), "n": i % 3})
	}
	by := func(by string, fields ...pod.Aggregate) error {
		_, err := p.Query(bg, pod.Query{Group: &pod.Group{By: []filter.Path{path(t, by)}, Fields: fields}})
		return err
	}
	require.ErrorIs(t, by("state.v"), pod.ErrTooManyGroups)
	least := pod.Aggregate{Of: pod.MinOf, Path: path(t, "state.v")}
	greatest := pod.Aggregate{Of: pod.MaxOf, Path: path(t, "state.v")}
	require.ErrorIs(t, by("name", least, greatest), pod.ErrTooManyGroups)
	require.NoError(t, by("state.n", least, least, greatest, greatest), "what is replaced counts no more")
}

// TestGroupOfNothing: one of all is there though nothing matches; of others there
// are none.
func TestGroupOfNothing(t *testing.T) {
	w, p := twins(t, 1, persisttest.NewMemory(), pod.Config{})
	defer w.close()
	fields := []pod.Aggregate{{Of: pod.CountOf, Path: path(t, "state.v")}, {Of: pod.SumOf, Path: path(t, "state.v")}, {Of: pod.MinOf, Path: path(t, "state.v")}}
	r, err := p.Query(bg, pod.Query{Group: &pod.Group{Fields: fields}})
	w.must(err)
	require.Len(t, r.Groups, 1)
	require.Equal(t, "[] 0 [0 null null]", fmt.Sprint(r.Groups[0].By, r.Groups[0].Count, r.Groups[0].Values))
	require.Equal(t, filter.Missing, r.Groups[0].Values[1].Kind())
	r, err = p.Query(bg, pod.Query{Group: &pod.Group{By: []filter.Path{path(t, "name")}, Fields: fields}})
	w.must(err)
	require.Empty(t, r.Groups)
}

// TestMessagesToNobodyLeaveTables: what comes to names that have no entity takes
// nothing away from what queries know of those that have one, not even what comes
// while the one before leaves.
func TestMessagesToNobodyLeaveTables(t *testing.T) {
	sys := actor.NewSystem("test", actor.Config{})
	pods, err := pod.Open(sys, persisttest.NewMemory(), pod.Config{IdleAfter: -1})
	require.NoError(t, err)
	p, _, _, err := pods.Declare(bg, "twins", documentPod(""))
	require.NoError(t, err)
	_, err = p.Ask(bg, "here", entity.Merge{"v": 1})
	require.NoError(t, err)
	before := p.Departures()
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for range 2000 {
				_, err := p.Ask(bg, "nobody", entity.Remove{Pointer: "/v"})
				if !errors.Is(err, entity.ErrNotFound) {
					t.Error(err)
				}
			}
		})
	}
	senders.Wait()
	require.Equal(t, before, p.Departures())
	_, err = p.Ask(bg, "here", entity.Passivate())
	require.NoError(t, err)
	require.Eventually(t, func() bool { return p.Departures() > before }, time.Minute, time.Millisecond)
	require.NoError(t, pods.Close(bg))
	require.NoError(t, sys.Stop(bg))
}

// TestTablesAreBounded: values that are rendered for a table do not fill the
// memory; the query is answered without one.
func TestTablesAreBounded(t *testing.T) {
	w, p := twins(t, 1, persisttest.NewMemory(), pod.Config{IdleAfter: -1, MaxActive: -1})
	defer w.close()
	const n = 40
	for i := range n {
		w.merge(p, fmt.Sprint("n", i), entity.Merge{"l": []any{[]any{[]any{[]any{[]any{[]any{strings.Repeat("x", 300<<10), i}}}}}}})
	}
	q := pod.Query{Limit: 3, Count: true}
	for at := "state"; len(q.Sort) < 8; at += "[0]" {
		q.Sort = append(q.Sort, pod.Order{Path: path(t, at)})
		if at == "state" {
			at += ".l"
			q.Sort = append(q.Sort, pod.Order{Path: path(t, at)})
		}
	}
	for range 4 {
		r, err := p.Query(bg, q)
		w.must(err)
		require.Equal(t, n, r.Count)
		require.Equal(t, []string{"n0", "n1", "n10"}, names(r))
		require.LessOrEqual(t, p.TableBytes(), 64<<20)
	}
	_, err := p.List(bg, persist.ListOptions{})
	w.must(err)
}
