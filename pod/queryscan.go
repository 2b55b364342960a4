package pod

import (
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/persist"
)

// run looks through one pod: by an index where one says more than nothing,
// else through memory where that holds all, else through the store.
func (s *search) run(p *Pod) error {
	if s.full() || s.many && !s.whole() && p.name < s.afterPod {
		return nil
	}
	if names, ok := p.candidates(s.query.Filter); ok {
		return s.byName(p, names)
	}
	if done, err := s.inTable(p); done || err != nil {
		return err
	}
	if s.query.Filter != nil || s.whole() {
		if resident, ok := p.allResident(); ok {
			return s.inMemory(p, resident)
		}
	}
	return s.inStore(p)
}

// byName looks at the entities of the names, which are in order.
func (s *search) byName(p *Pod, names []string) error {
	for _, name := range names {
		if s.full() {
			return nil
		}
		if !s.whole() && !s.behind(p.name, name) {
			continue
		}
		if err := s.one(p, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) one(p *Pod, name string) error {
	v, err := p.Get(s.ctx, name)
	if err != nil {
		return s.missed(p, name, err)
	}
	return s.consider(p, name, &v.record)
}

// inMemory looks at the entities of slots, which are all that the pod has.
func (s *search) inMemory(p *Pod, resident []*slot) error {
	var unknown []*slot
	for _, slot := range resident {
		r := slot.view.Load()
		if r == nil {
			unknown = append(unknown, slot)
			continue
		}
		if err := s.consider(p, slot.name, r); err != nil {
			return err
		}
	}
	return s.fromStore(p, unknown)
}

// fromStore looks at entities of which the store alone knows, by name: the slots
// come in no order, and what is asked of the store must not show that.
func (s *search) fromStore(p *Pod, slots []*slot) error {
	slices.SortFunc(slots, func(a, b *slot) int { return strings.Compare(a.name, b.name) })
	for n, slot := range slots {
		if n > 0 && slot.name == slots[n-1].name {
			continue // one that followed on another of its name
		}
		if err := s.one(p, slot.name); err != nil {
			return err
		}
	}
	return nil
}

// inStore goes through the store by name, a chunk at a time. For what is in
// memory its view counts.
func (s *search) inStore(p *Pod) error {
	o := persist.ListOptions{Prefix: s.query.Prefix, Limit: s.limit + firstListedExtra, MaxBytes: mostListedBytes}
	if !s.whole() && (!s.many || p.name == s.afterPod) {
		o.After = s.afterName
	}
	all := o.After == "" && o.Prefix == ""
	if prefix, ok := s.namePrefix(); ok && len(prefix) > len(o.Prefix) && (!all || !s.whole() || !p.isPromised()) {
		o.Prefix = prefix
	}
	if s.whole() {
		o.Limit = mostListed
	}
	census := &census{}
	if all {
		census = p.takeCensus(o.Prefix != "")
	}
	for {
		page, err := p.List(s.ctx, o)
		if err != nil {
			return err
		}
		census.saw(page)
		for i := range page.Items {
			item := &page.Items[i]
			if item.Err != nil {
				err = s.missed(p, item.Name, item.Err)
			} else {
				err = s.consider(p, item.Name, &item.View.record)
			}
			if err != nil {
				return err
			}
			if s.full() {
				return nil
			}
		}
		if o.After = page.Next; page.Next == "" {
			census.finish()
			return nil
		}
		o.Limit = min(2*o.Limit, mostListed)
	}
}

// namePrefix is a beginning that the filter demands of names, beside what the
// query does.
func (s *search) namePrefix() (string, bool) {
	if s.query.Filter == nil {
		return "", false
	}
	name, err := filter.ParsePath("name")
	if err != nil {
		return "", false
	}
	ranges, ok := s.query.Filter.Ranges(name)
	if !ok || len(ranges) != 1 {
		return "", false
	}
	return ranges[0].Prefix()
}
