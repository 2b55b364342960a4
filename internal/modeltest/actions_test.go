package modeltest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/jsonfile"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/snapshot"
)

// actions are what a run consists of.
func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"":           func(*rapid.T) { w.invariant() },
		"send":       w.send,
		"burst":      w.burst,
		"repeat":     w.repeat,
		"steps":      w.steps,
		"pass":       func(t *rapid.T) { w.pass(time.Duration(rapid.IntRange(1, 300).Draw(t, "ms")) * time.Millisecond) },
		"settle":     func(t *rapid.T) { w.settle(w.anyBook(t)) },
		"passivate":  w.passivate,
		"delete":     w.delete,
		"rebuild":    w.rebuild,
		"quarantine": w.quarantine,
		"fault":      w.fault,
		"restart":    func(*rapid.T) { w.close(); w.shut(); w.open() },
		"crash":      func(*rapid.T) { w.crash(); w.open() },
		"backup":     w.backup,
		"move":       w.move,
	}
}

// invariant compares all that can be read with the model.
func (w *world) invariant() {
	for _, k := range w.keys {
		w.look(w.books[k])
	}
	for _, p := range podNames {
		w.list(p)
	}
}

func (w *world) anyBook(t *rapid.T) *book {
	return w.books[rapid.SampledFrom(w.keys).Draw(t, "entity")]
}

func (w *world) send(t *rapid.T) {
	a := w.command(t, w.anyBook(t))
	if rapid.Bool().Draw(t, "await") {
		w.await(a)
	}
}

// burst sends many messages at once, most of them to one entity, perhaps with a
// commit among them that fails.
func (w *world) burst(t *rapid.T) {
	most := w.anyBook(t)
	if rapid.IntRange(0, 2).Draw(t, "spoiled") == 0 {
		w.fault(t)
	}
	for range rapid.IntRange(2, 12).Draw(t, "messages") {
		b := most
		if rapid.IntRange(0, 2).Draw(t, "other") == 0 {
			b = w.anyBook(t)
		}
		w.command(t, b)
		if w.exec != nil {
			for range rapid.IntRange(0, 5).Draw(t, "steps") {
				w.exec.Step()
			}
		}
	}
}

// partner is the entity to which most messages of an entity go, so that there
// are several on the same way.
func (w *world) partner(b *book) *book {
	return w.books[w.keys[(slices.Index(w.keys, b.key)+3)%len(w.keys)]]
}

// command sends a random command.
func (w *world) command(t *rapid.T, b *book) *attempt {
	what := "merge"
	if b.key.Pod != docPod {
		what = rapid.SampledFrom([]string{
			"add", "add", "note", "even", "boom", "spoil", "idle", "refuse", "post", "post", "post", "pair",
		}).Draw(t, "what")
	}
	if what == "pair" && b.key.Pod != sourcedPod {
		what = "add"
	}
	id := fmt.Sprint("c", w.sent+1)
	e := &effect{id: id, entries: []string{id}}
	msg := w.compose(t, b, what, e)
	if slices.Contains([]string{"boom", "spoil", "idle", "refuse"}, what) {
		e = nil
	}
	a := w.attempt(b, what, e)
	a.rows = e != nil && len(e.parcels) > 0
	if rapid.IntRange(0, 2).Draw(t, "id") == 0 {
		a.messageID, a.rows = id, true
	}
	if l := b.alive(); l != nil && what != "pair" && rapid.IntRange(0, 7).Draw(t, "condition") == 0 {
		a.match = entity.ETag{Life: l.n, Revision: l.floor}
	}
	if what == "idle" {
		a.match = entity.ETag{}
	}
	w.dispatch(a, msg)
	return a
}

// compose makes a command, and says in e what it does.
func (w *world) compose(t *rapid.T, b *book, what string, e *effect) any {
	switch what {
	case "merge":
		return mergeOf(e.id)
	case "note":
		return note{e.id}
	case "even":
		return even{e.id}
	case "pair":
		e.entries = append(e.entries, e.id+"+")
		return pair{e.id}
	case "boom":
		return boom{e.id}
	case "spoil":
		return spoil{e.id}
	case "idle":
		return idle{}
	case "refuse":
		return refuse{e.id}
	case "post":
		to := w.partner(b)
		if rapid.IntRange(0, 2).Draw(t, "elsewhere") == 0 {
			to = w.anyBook(t)
		}
		m := post{ID: e.id, Pod: to.key.Pod, Name: to.key.Name, N: rapid.IntRange(1, 3).Draw(t, "n"), Bad: rapid.Bool().Draw(t, "bad")}
		e.to = to.key
		for i := range m.N {
			e.parcels = append(e.parcels, parcelID(e.id, i))
		}
		return m
	}
	return add{e.id}
}

// dispatch binds a message and sends it.
func (w *world) dispatch(a *attempt, v any) {
	m, err := w.pod(a.book.key.Pod).Spec().Wrap(v)
	w.must(err, "bind a message")
	if a.messageID != "" {
		w.must(m.SetID(a.messageID), "give a message its id")
	}
	if a.match != (entity.ETag{}) {
		m.If = entity.Condition{Match: []entity.ETag{a.match}}
	}
	if a.effect != nil {
		a.effect.msg = v
	}
	w.post(a, m)
}

// repeat sends a message with an id again.
func (w *world) repeat(t *rapid.T) {
	var old []*attempt
	for _, k := range w.keys {
		for _, a := range w.books[k].attempts {
			if a.messageID == "" || a.effect == nil || a != a.effect.attempts[0] || a.effect.gone {
				continue
			}
			if len(a.effect.parcels) == 0 || !a.book.everDeleted() { // another life would send them again
				old = append(old, a)
			}
		}
	}
	if len(old) == 0 {
		t.Skip("nothing has an id")
	}
	of := old[len(old)-1-rapid.IntRange(0, len(old)-1).Draw(t, "which")]
	a := w.attempt(of.book, of.what, of.effect)
	a.messageID, a.rows = of.messageID, true
	w.dispatch(a, of.effect.msg)
	if rapid.Bool().Draw(t, "await") {
		w.await(a)
	}
}

func (w *world) steps(t *rapid.T) {
	n := rapid.IntRange(1, 60).Draw(t, "steps")
	if w.exec == nil {
		w.pass(time.Duration(n) * 100 * time.Microsecond)
		return
	}
	for range n {
		if !w.exec.Step() {
			return
		}
	}
}

func (w *world) passivate(t *rapid.T) {
	b := w.anyBook(t)
	a := w.attempt(b, "passivate", nil)
	w.post(a, entity.Passivate())
	if rapid.Bool().Draw(t, "await") {
		w.await(a)
	}
}

func (w *world) delete(t *rapid.T) {
	b := w.anyBook(t)
	a := w.attempt(b, "delete", nil)
	var c entity.Condition
	if l := b.alive(); l != nil && rapid.IntRange(0, 3).Draw(t, "condition") == 0 {
		a.match = entity.ETag{Life: l.n, Revision: l.floor}
		c.Match = []entity.ETag{a.match}
	}
	w.post(a, entity.Delete(c))
	if rapid.Bool().Draw(t, "await") {
		w.await(a)
	}
}

func (w *world) rebuild(t *rapid.T) {
	b := w.books[persist.Key{Pod: sourcedPod, Name: rapid.SampledFrom(entityNames).Draw(t, "entity")}]
	a := w.attempt(b, "rebuild", nil)
	w.post(a, entity.Rebuild())
	if rapid.Bool().Draw(t, "await") {
		w.await(a)
	}
}

// quarantine makes a record unreadable for a while.
func (w *world) quarantine(t *rapid.T) {
	b := w.anyBook(t)
	if b.key.Pod == volatilePod {
		t.Skip("it is in no store")
	}
	w.settle(b)
	leave := w.attempt(b, "passivate", nil)
	w.post(leave, entity.Passivate())
	w.await(leave)
	if leave.fate != accepted {
		return // it has changes that are not durable, which would be lost with its record
	}
	w.damaged[b.key] = true
	heal := w.faults.OnLoads(func(k persist.Key) bool { return k == b.key }, snapshot.ErrCorrupt)
	w.await(w.fence(b))
	w.look(b)
	w.pass(time.Duration(rapid.IntRange(0, 50).Draw(t, "ms")) * time.Millisecond)
	heal()
	retry := w.attempt(b, "retry", nil)
	w.post(retry, entity.Retry())
	w.await(retry)
	w.settle(b)
	delete(w.damaged, b.key)
}

// fault spoils a commit to come.
func (w *world) fault(t *rapid.T) {
	f := rapid.SampledFrom([]persisttest.Fault{
		persisttest.FailBefore, persisttest.UnknownApplied, persisttest.UnknownLost, persisttest.ConflictUnit,
	}).Draw(t, "fault")
	w.faults.OnCommit(w.faults.Commits()+rapid.IntRange(1, 4).Draw(t, "commit"), f)
	w.faults.FailReopens(rapid.IntRange(0, 2).Draw(t, "reopens"))
	if j, is := w.raw.(*jsonfile.Store); is {
		w.must(j.Flush(context.Background()), "flush")
	}
}

// backup writes the store out while it is used, ends the system by a crash, and
// goes on with what the backup holds, unless more was acknowledged meanwhile.
func (w *world) backup(t *rapid.T) {
	w.hear()
	before, heard := w.acknowledgements(), w.heard
	var out bytes.Buffer
	if b, is := w.raw.(persist.Backuper); !is {
		t.Skip("the store has no backups")
	} else if err := b.Backup(context.Background(), &out); err != nil {
		t.Skip("the store is not open") // it is being reopened
	}
	after, err := w.medium.restore(&out)
	w.must(err, "restore")
	w.crash()
	news := w.heard != heard
	for a := range w.acknowledgements() { // others may have been lost by the crash, so their number says nothing
		news = news || !before[a]
	}
	if !news {
		w.medium = after
	}
	w.open()
}

// acknowledgements are the attempts that were acknowledged to their senders.
func (w *world) acknowledgements() map[*attempt]bool {
	accepts := map[*attempt]bool{}
	for _, k := range w.keys {
		for _, a := range w.books[k].attempts {
			if a.fate == accepted {
				accepts[a] = true
			}
		}
	}
	return accepts
}

// move goes on with a copy in a store of perhaps another kind.
func (w *world) move(t *rapid.T) {
	to := rapid.SampledFrom(w.media).Draw(t, "to").fresh()
	w.close()
	copied, err := to.open()
	w.must(err, "open the store to copy to")
	_, err = persist.Copy(context.Background(), w.raw, copied, persist.CopyOptions{})
	w.must(err, "copy")
	w.must(w.raw.Close(), "close the store")
	w.raw = nil
	w.must(copied.Close(), "close the copy")
	w.medium = to.closed(copied)
	w.open()
}
