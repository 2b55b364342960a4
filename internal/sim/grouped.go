package sim

import (
	"slices"

	"github.com/twinsrv/twinsrv/pod"
)

// aggregate is one number of a group.
type aggregate struct {
	of   pod.Aggregation
	path string
}

// grouping is how what matches is put together.
type grouping struct {
	by     []string
	fields []aggregate
}

// groupRow is one group.
type groupRow struct {
	by     []any
	count  int
	values []any
}

func compareLists(a, b []any) int {
	for i := range a {
		if c := compareValues(a[i], b[i]); c != 0 {
			return c
		}
	}
	return 0
}

// groups puts entities together that fit.
func (g *grouping) groups(of []*twin) (rows []groupRow) {
	members := map[int][]*twin{}
	for _, t := range of {
		var by []any
		for _, p := range g.by {
			by = append(by, t.at(p))
		}
		n := slices.IndexFunc(rows, func(r groupRow) bool { return compareLists(r.by, by) == 0 })
		if n < 0 {
			n, rows = len(rows), append(rows, groupRow{by: by})
		}
		rows[n].count++
		members[n] = append(members[n], t)
	}
	if len(g.by) == 0 && len(rows) == 0 {
		rows = []groupRow{{}}
	}
	for n := range rows {
		for _, f := range g.fields {
			rows[n].values = append(rows[n].values, f.value(members[n]))
		}
	}
	slices.SortFunc(rows, func(a, b groupRow) int { return compareLists(a.by, b.by) })
	return rows
}

// value puts the values of a group's entities together.
func (f aggregate) value(of []*twin) any {
	var all []any
	var numbers, sum float64
	for _, t := range of {
		v := t.at(f.path)
		if rank(v) > 1 {
			all = append(all, v)
		}
		if n, is := v.(float64); is {
			numbers++
			sum += n
		}
	}
	switch {
	case f.of == pod.CountOf:
		return float64(len(all))
	case f.of == pod.MinOf && len(all) > 0:
		return slices.MinFunc(all, compareValues)
	case f.of == pod.MaxOf && len(all) > 0:
		return slices.MaxFunc(all, compareValues)
	case f.of == pod.SumOf && numbers > 0:
		return sum
	case f.of == pod.AvgOf && numbers > 0:
		return sum / numbers
	}
	return absent{}
}
