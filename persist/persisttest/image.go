package persisttest

import (
	"fmt"
	"sort"
	"strings"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/snapshot"
)

const (
	defaultLimit = 100
	maxValue     = 16 << 20
)

// image is what a store holds: the port's meaning, written down plainly. It
// shares no bytes with its callers. It is not safe for concurrent use.
type image struct {
	next    uint64
	records *table[stored] // by pod 0 name
	changes []persist.Change
	rows    *table[persist.Row] // by kind 0 pod 0 name 0 id
}

// stored is a record in its envelope.
type stored struct {
	life, revision uint64
	data           []byte
}

func newImage() *image {
	return &image{next: 1, records: newTable[stored](), rows: newTable[persist.Row]()}
}

// clone returns an image that goes its own way. The bytes are shared: nothing
// ever changes them.
func (m *image) clone() *image {
	return &image{
		next:    m.next,
		records: m.records.clone(),
		changes: m.changes[:len(m.changes):len(m.changes)],
		rows:    m.rows.clone(),
	}
}

func path(k persist.Key) string { return k.Pod + "\x00" + k.Name }

func rowPath(kind string, k persist.Key, id string) string {
	return kind + "\x00" + path(k) + "\x00" + id
}

// commit applies units and returns their outcomes.
func (m *image) commit(units []persist.Unit) []persist.Outcome {
	created := map[persist.Key]uint64{}
	outcomes := make([]persist.Outcome, len(units))
	for i := range units {
		u := &units[i]
		before, exists, err := m.judge(u, created)
		if err != nil {
			outcomes[i].Err = fmt.Errorf("%s: %w", u.Key, err)
			continue
		}
		outcomes[i] = m.apply(u, before, exists, created)
	}
	return outcomes
}

// judge decides whether a unit is applied.
func (m *image) judge(u *persist.Unit, created map[persist.Key]uint64) (stored, bool, error) {
	if err := u.Check(maxValue); err != nil {
		return stored{}, false, err
	}
	r, exists := m.records.m[path(u.Key)]
	life := u.Life
	if life == 0 {
		life = created[u.Key]
	}
	switch {
	case u.Force, u.Expect == 0 && !exists:
		return r, exists, nil
	case u.Expect == 0:
		return r, exists, fmt.Errorf("%w: it exists already", persist.ErrConflict)
	case !exists || life == 0 || r.life != life || r.revision != u.Expect:
		return r, exists, fmt.Errorf("%w: life %d revision %d is stored, the unit expects %d and %d",
			persist.ErrConflict, r.life, r.revision, life, u.Expect)
	}
	return r, exists, nil
}

func (m *image) apply(u *persist.Unit, before stored, exists bool, created map[persist.Key]uint64) persist.Outcome {
	if u.Delete && !exists {
		return persist.Outcome{}
	}
	life := before.life
	if !exists {
		life = m.next
		created[u.Key] = life
	}
	o := persist.Outcome{Life: life, Position: m.next}
	if len(u.Changes) == 0 {
		m.next++
	}
	last := m.lastRevision(u.Key, life)
	for _, c := range u.Changes {
		c.Key, c.Life, c.Position = u.Key, life, m.next
		c.Time = c.Time.Round(0).UTC()
		c.Data = cloneBytes(c.Data)
		if u.Force {
			c.Revision = max(c.Revision, last+1)
			last = c.Revision
		}
		m.changes = append(m.changes, c)
		o.Position = m.next
		m.next++
	}
	m.put(u, life, created)
	return o
}

func (m *image) put(u *persist.Unit, life uint64, created map[persist.Key]uint64) {
	if u.Delete {
		delete(created, u.Key)
		m.records.delete(path(u.Key))
		for _, k := range append([]string(nil), m.rows.keys...) {
			if m.rows.m[k].Key == u.Key {
				m.rows.delete(k)
			}
		}
		return
	}
	if u.Record != nil {
		r := *u.Record
		r.Life = life
		m.records.put(path(u.Key), stored{life: life, revision: r.Revision, data: r.Append(nil)})
	}
	for _, op := range u.Rows {
		k := rowPath(op.Kind, u.Key, op.ID)
		if op.Delete {
			m.rows.delete(k)
			continue
		}
		m.rows.put(k, persist.Row{Kind: op.Kind, Key: u.Key, ID: op.ID, Value: append([]byte{}, op.Value...)})
	}
}

// lastRevision returns the highest revision of a life in the journal.
func (m *image) lastRevision(k persist.Key, life uint64) uint64 {
	for i := len(m.changes) - 1; i >= 0; i-- {
		if c := &m.changes[i]; c.Key == k && c.Life == life {
			return c.Revision
		}
	}
	return 0
}

func (m *image) load(k persist.Key) (snapshot.Record, error) {
	r, ok := m.records.m[path(k)]
	if !ok || strings.Contains(k.Pod, "\x00") {
		return snapshot.Record{}, fmt.Errorf("%s: %w", k, persist.ErrNotFound)
	}
	rec, err := snapshot.Parse(r.data)
	if err != nil {
		return snapshot.Record{}, fmt.Errorf("%s: %w", k, err)
	}
	return rec, nil
}

func (m *image) list(pod string, o persist.ListOptions) persist.Page {
	o = o.WithDefaults()
	var page persist.Page
	size := 0
	m.records.each(pod+"\x00"+o.Prefix, pod+"\x00"+o.After, func(key string, r stored) bool {
		item := persist.Item{Name: key[len(pod)+1:]}
		if item.Name == o.After {
			return true
		}
		if page.More = len(page.Items) == o.Limit || size >= o.MaxBytes; page.More {
			return false
		}
		rec, err := snapshot.Parse(r.data)
		if err != nil {
			item.Err = fmt.Errorf("%s/%s: %w", pod, item.Name, err)
		}
		item.Record = rec
		size += len(rec.State)
		page.Items = append(page.Items, item)
		return true
	})
	return page
}

func (m *image) history(k persist.Key, life, from uint64, limit int) []persist.Change {
	var out []persist.Change
	for _, c := range m.changes {
		if c.Key == k && (life == 0 || c.Life == life) && c.Revision >= from && len(out) < limitOr(limit) {
			c.Data = cloneBytes(c.Data)
			out = append(out, c)
		}
	}
	return out
}

func (m *image) log(after uint64, limit int) []persist.Change {
	i := sort.Search(len(m.changes), func(i int) bool { return m.changes[i].Position > after })
	var out []persist.Change
	for ; i < len(m.changes) && len(out) < limitOr(limit); i++ {
		c := m.changes[i]
		c.Data = cloneBytes(c.Data)
		out = append(out, c)
	}
	return out
}

func (m *image) trim(after, through uint64, limit int) persist.Trimmed {
	i := sort.Search(len(m.changes), func(i int) bool { return m.changes[i].Position > after })
	end := sort.Search(len(m.changes), func(i int) bool { return m.changes[i].Position > through })
	t := persist.Trimmed{Through: max(after, min(through, m.next-1))}
	if end = max(end, i); end-i > limitOr(limit) {
		end = i + limitOr(limit)
		t.Through = m.changes[end-1].Position
	}
	kept := append([]persist.Change(nil), m.changes[:i]...)
	for _, c := range m.changes[i:end] {
		if r, ok := m.records.m[path(c.Key)]; c.Event && ok && r.life == c.Life {
			kept = append(kept, c)
		}
	}
	t.Dropped = end - len(kept)
	m.changes = append(kept, m.changes[end:]...)
	return t
}

func (m *image) rowsFrom(kind string, after *persist.Row, limit int) []persist.Row {
	prefix, from := "", ""
	if kind != "" {
		prefix = kind + "\x00"
	}
	if after != nil {
		from = rowPath(after.Kind, after.Key, after.ID)
		if kind != "" {
			from = rowPath(kind, after.Key, after.ID)
		}
	}
	var out []persist.Row
	if strings.Contains(kind, "\x00") {
		return nil
	}
	m.rows.each(prefix, from, func(key string, r persist.Row) bool {
		if after != nil && key == from {
			return true
		}
		r.Value = append([]byte{}, r.Value...)
		out = append(out, r)
		return len(out) < limitOr(limit)
	})
	return out
}

func (m *image) rowsOf(key persist.Key) []persist.Row {
	var out []persist.Row
	for _, k := range m.rows.keys {
		if r := m.rows.m[k]; r.Key == key {
			r.Value = append([]byte{}, r.Value...)
			out = append(out, r)
		}
	}
	return out
}

func (m *image) pods() []string {
	var out []string
	for _, k := range m.records.keys {
		if pod, _, _ := strings.Cut(k, "\x00"); len(out) == 0 || out[len(out)-1] != pod {
			out = append(out, pod)
		}
	}
	return out
}

func limitOr(n int) int {
	if n <= 0 {
		return defaultLimit
	}
	return n
}

// cloneBytes copies; nothing stays nil.
func cloneBytes(b []byte) []byte { return append([]byte(nil), b...) }
