package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// judgePage looks at one page: everything fits and is in order, and is what one
// moment of each entity, between call and return, explains.
func (w *process) judgePage(a *answer, p *page) {
	p.quarantined = map[persist.Key]bool{}
	for _, bad := range p.result.Quarantined {
		p.quarantined[persist.Key{Pod: bad.Pod, Name: bad.Name}] = true
		if bad.Pod != frail {
			w.wrong("G5: the query %v says that %s/%s cannot be read: %v", &a.question, bad.Pod, bad.Name, bad.Reason)
		}
	}
	if n := len(p.result.Quarantined); n != p.result.Unreadable || n != len(p.quarantined) {
		w.wrong("the query %v met %d entities that cannot be read, and names %d", &a.question, p.result.Unreadable, n)
	}
	last := p.after
	for i := range p.result.Items {
		found := &p.result.Items[i]
		t, err := read(&found.View)
		if err != nil {
			w.wrong("G5: %s/%s was found and cannot be decoded: %v", found.View.Pod, found.View.Name, err)
			return
		}
		p.items = append(p.items, t)
		if !a.fits(t) {
			w.wrong("the query %v has found %s/%s, which is %v", &a.question, t.pod, t.name, t.state)
		}
		if last != nil && a.compare(last, t) >= 0 {
			w.wrong("the query %v shows %s/%s behind %s/%s", &a.question, t.pod, t.name, last.pod, last.name)
		}
		last = t
		w.judgeShown(a, found, t)
	}
	if n := len(p.items); n > a.limit || p.result.Next != "" && n < a.limit {
		w.wrong("the query %v shows %d on a page, more: %t", &a.question, n, p.result.Next != "")
	}
}

// judgeShown looks at one found entity: nothing is shown that is not durable.
func (w *process) judgeShown(a *answer, found *pod.Found, t *twin) {
	if lasting(t.pod) {
		rec, err := w.disk.base.Load(context.Background(), persist.Key{Pod: t.pod, Name: t.name})
		if err == nil && (rec.Life < t.life || rec.Life == t.life && rec.Revision < t.revision) {
			w.wrong("G2: the query %v shows %s/%s %d-%d; the store has %d-%d", &a.question, t.pod, t.name, t.life, t.revision, rec.Life, rec.Revision)
		}
		same := err == nil && rec.Life == t.life && rec.Revision == t.revision && t.pod != books && t.pod != purses // their records are older
		if codec, state := found.View.Encoded(); same && (codec != rec.Codec || !bytes.Equal(state, rec.State)) {
			w.wrong("G3: the query %v shows %s/%s %d-%d otherwise than the store has it", &a.question, t.pod, t.name, t.life, t.revision)
		}
	}
	if !a.shows {
		return
	}
	var got, want any
	if err := json.Unmarshal(found.Selected, &got); err != nil {
		w.wrong("the query %v selects %s: %v", &a.question, found.Selected, err)
		return
	}
	members, state := map[string]any{"revision": float64(t.revision)}, map[string]any{}
	for _, m := range []string{"log", "balance"} {
		if v := t.at("state." + m); rank(v) > 0 {
			state[m] = v
		}
	}
	if len(state) > 0 {
		members["state"] = state
	}
	if want = members; !reflect.DeepEqual(got, want) {
		w.wrong("the query %v selects %s of %v", &a.question, found.Selected, t.state)
	}
}
