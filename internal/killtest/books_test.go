package killtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// patience bounds waits that end much sooner.
const patience = 30 * time.Second

// finish runs the bank in this process until every transfer has an answer and
// has arrived, and closes the books. It adds to d.wrong.
func (d *driver) finish(t *testing.T, br branch) {
	t.Helper()
	store, err := openStore(br.Store, br.Where)
	require.NoError(t, err)
	d.left += left(t, store)
	var log lines
	b, err := openBank(store, br.Kinds, pod.Config{}, &log)
	require.NoError(t, err)
	for len(d.again) > 0 && len(d.wrong) == 0 {
		answers := make(chan answer, len(d.again))
		for _, c := range d.again {
			d.open[c.ID] = c
			b.do(c, func(a answer) { answers <- a })
		}
		d.again = nil
		for range cap(answers) {
			d.take(<-answers)
		}
	}
	if len(d.wrong) == 0 {
		d.settle(t, b)
		d.audit(t, b)
	}
	require.NoError(t, b.close(), &log)
	d.wrong = append(d.wrong, complaintsIn(log.String())...)
}

// lines is a log that is written by many.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// left counts the messages that the killed process had not delivered.
func left(t *testing.T, store persist.PersistenceService) int {
	t.Helper()
	rows, err := store.Rows(t.Context(), "outbox", nil, 1<<20)
	require.NoError(t, err)
	return len(rows)
}

// settle waits until the outboxes are empty, and says what else there is beside
// the accounts, which must be bounded.
func (d *driver) settle(t *testing.T, b *bank) {
	t.Helper()
	rows, err := b.rows(t.Context())
	for begin := time.Now(); err == nil && rows["outbox"] > 0 && time.Since(begin) < patience; rows, err = b.rows(t.Context()) {
		<-time.After(5 * time.Millisecond)
	}
	require.NoError(t, err)
	n := len(d.names)
	most := map[string]int{"outbox": 0, "number": n, "inbox": n * n, "answer": n * remembered, "snapshot": n}
	for kind, have := range rows {
		if have > most[kind] {
			d.complain("there are %d rows of kind %s, want %d at most", have, kind, most[kind])
		}
	}
}

func (d *driver) complain(format string, args ...any) {
	d.wrong = append(d.wrong, fmt.Sprintf(format, args...))
}

// audit compares the accounts with what the driver knows.
func (d *driver) audit(t *testing.T, b *bank) {
	t.Helper()
	found := map[string]account{}
	sum := 0
	for _, name := range d.names {
		a, err := b.account(t.Context(), name)
		require.NoError(t, err)
		found[name] = a
		sum += a.Balance
	}
	if sum != initial*len(d.names) {
		d.complain("the sum is %d, not %d", sum, initial*len(d.names))
	}
	out, in := d.sent(found), d.got(found)
	for _, id := range slices.Sorted(maps.Keys(d.issued)) {
		c, a := d.issued[id], d.done[id]
		switch {
		case out[id] > 1 || in[id] > 1:
			d.complain("%+v was withdrawn %d times and arrived %d times", c, out[id], in[id])
		case out[id] != in[id]:
			d.complain("%+v was withdrawn %d times and arrived %d times", c, out[id], in[id])
		case a.Rejected && out[id] > 0:
			d.complain("%+v was rejected and done", c)
		case !a.Rejected && out[id] == 0:
			d.complain("%+v was acknowledged and is not done", c)
		}
	}
	for _, name := range d.names {
		a, n := found[name], d.notes[name]
		// A till may lose what came without an id, and that alone.
		if a.Notes > n.sent || a.Notes < n.acked && !strings.HasPrefix(name, tills) {
			d.complain("%s has %d notes, %d were sent and %d acknowledged", name, a.Notes, n.sent, n.acked)
		}
	}
}

// sent counts the withdrawals of each transfer, and compares balances with what
// went out and came in.
func (d *driver) sent(found map[string]account) map[uint64]int {
	out := map[uint64]int{}
	for _, name := range d.names {
		balance := initial
		for _, id := range found[name].Sent {
			c, issued := d.issued[id]
			if !issued || c.Of != name {
				d.complain("%s sent transfer %d, which was not asked of it", name, id)
			}
			out[id]++
			balance -= c.Amount
		}
		for _, r := range found[name].Got {
			balance += d.issued[r.ID].Amount
		}
		if balance != found[name].Balance || balance < 0 {
			d.complain("%s has %d; what it sent and got comes to %d", name, found[name].Balance, balance)
		}
	}
	return out
}

// got counts the deposits of each transfer, and looks whether they came from
// whom they should, to whom they should, and in each sender's order.
func (d *driver) got(found map[string]account) map[uint64]int {
	in := map[uint64]int{}
	for _, name := range d.names {
		last := map[string]int{} // place in the sender's list
		for _, r := range found[name].Got {
			in[r.ID]++
			if c := d.issued[r.ID]; c.Of != r.From || c.To != name {
				d.complain("%s got transfer %d of %s, which is %+v", name, r.ID, r.From, c)
				continue
			}
			at := 1 + slices.Index(found[r.From].Sent, r.ID)
			if at <= last[r.From] {
				d.complain("%s got transfer %d of %s in the wrong order", name, r.ID, r.From)
			}
			last[r.From] = at
		}
	}
	return in
}
