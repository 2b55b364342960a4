package killtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// outstanding is how many commands have no answer at a time.
const outstanding = 64

// driver sends transfers among accounts and remembers what it was told. It
// outlives the processes that it talks to.
type driver struct {
	rng   *rand.Rand
	names []string // pod/name

	last   uint64             // the last ID given
	issued map[uint64]command // transfers
	done   map[uint64]answer  // to those
	again  []command          // transfers without an answer, to be sent again
	open   map[uint64]command // sent to the process that runs, not answered
	notes  map[string]*count  // by account
	wrong  []string           // answers that must not be
	dupes  int                // transfers that were asked for again after they were answered
	left   int                // messages that were found undelivered when the books were closed
}

// count is of things that are not repeated.
type count struct{ sent, acked int }

func newDriver(seed uint64, kinds []string, n int) *driver {
	d := &driver{
		rng:    rand.New(rand.NewPCG(seed, 1)),
		issued: map[uint64]command{}, done: map[uint64]answer{}, open: map[uint64]command{}, notes: map[string]*count{},
	}
	for i := range n {
		name := fmt.Sprintf("%s/a%d", kinds[i%len(kinds)], i)
		d.names = append(d.names, name)
		d.notes[name] = &count{}
	}
	return d
}

// next returns a command that is to be sent: first what has no answer, else
// something new or a repetition.
func (d *driver) next() command {
	if len(d.again) > 0 {
		c := d.again[0]
		d.again = d.again[1:]
		return c
	}
	of := d.names[d.rng.IntN(len(d.names))]
	switch d.rng.IntN(16) {
	case 0:
		d.last++
		d.notes[of].sent++
		return command{ID: d.last, Of: of, Note: true}
	case 1:
		d.last++
		return command{ID: d.last, Of: of, Leave: true}
	case 2:
		if c, ok := d.answered(); ok {
			d.dupes++
			return c
		}
	}
	d.last++
	c := command{ID: d.last, Of: of, To: d.names[d.rng.IntN(len(d.names))], Amount: 1 + d.rng.IntN(initial/2)}
	d.issued[c.ID] = c
	return c
}

// answered returns one of the last transfers, if it was answered. An account
// that has rejected one is there, since the first cannot be too large.
func (d *driver) answered() (command, bool) {
	id := d.last - uint64(d.rng.IntN(256))
	_, ok := d.done[id]
	return d.issued[id], ok
}

// take notes an answer.
func (d *driver) take(a answer) {
	c, ok := d.open[a.ID]
	switch {
	case !ok || a.Error != "":
		d.wrong = append(d.wrong, fmt.Sprintf("answer %+v to command %+v", a, c))
		return
	}
	delete(d.open, a.ID)
	before, known := d.done[a.ID]
	switch {
	case c.Leave:
	case c.Note && a.Later == "" && !a.Rejected:
		d.notes[c.Of].acked++
	case c.Note:
	case a.Later != "" && !known:
		d.again = append(d.again, c)
	case a.Later != "":
	case !known:
		d.done[a.ID] = a
	case a != before:
		d.wrong = append(d.wrong, fmt.Sprintf("the repetition of %+v was answered with %+v, the first time with %+v", c, a, before))
	}
}

// lost keeps what the end of a process left without an answer.
func (d *driver) lost() {
	for _, id := range slices.Sorted(maps.Keys(d.open)) {
		if _, known := d.done[id]; d.open[id].To != "" && !known {
			d.again = append(d.again, d.open[id])
		}
	}
	clear(d.open)
}

// ending says when a process ends, and how.
type ending struct {
	after   time.Duration
	answers int  // if not 0, it ends with so many answers at the latest
	clean   bool // in good order
}

// ending lets some processes end while they start, and most at work.
func (d *driver) ending() ending {
	e := ending{after: time.Duration(d.rng.IntN(100)) * time.Millisecond}
	switch d.rng.IntN(8) {
	case 0:
		e.clean = true
	case 1, 2, 3, 4:
		e.answers, e.after = 1+d.rng.IntN(200), 400*time.Millisecond
	}
	return e
}

// run drives one process to its end. It returns whether that was by a kill. What
// should not have been answered is in d.wrong.
func (d *driver) run(t *testing.T, c *child, e ending) (killed bool) {
	t.Helper()
	timer := time.NewTimer(e.after)
	defer timer.Stop()
	retry := time.NewTicker(5 * time.Millisecond) // what is to come later is not sent at once
	defer retry.Stop()
	ending, answers := false, 0
	end := func() {
		if ending {
			return
		}
		ending = true
		if e.clean {
			c.quit(t)
			return
		}
		killed = true
		c.kill(t)
	}
	send := func(least int) {
		for !ending && len(d.open) < least {
			cmd := d.next()
			if _, is := d.open[cmd.ID]; is {
				continue
			}
			d.open[cmd.ID] = cmd
			if c.send(cmd) != nil {
				return // it has ended; its answers will, too
			}
		}
	}
	send(outstanding)
	for open := true; open; {
		var a answer
		select {
		case a, open = <-c.answers:
			if !open {
				break
			}
			d.take(a)
			if answers++; answers == e.answers || len(d.wrong) > 0 {
				end()
			}
			send(outstanding - len(d.again))
		case <-retry.C:
			send(outstanding)
		case <-timer.C:
			end()
		}
	}
	complaints, err := c.ended()
	d.wrong = append(d.wrong, complaints...)
	require.True(t, ending, "the process ended by itself: %v: %s", err, &c.stderr)
	if e.clean {
		require.NoError(t, err, &c.stderr)
	}
	d.lost()
	return killed
}
