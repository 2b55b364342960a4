package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
)

// ring is a step about reminders that come again.
const ring kind = "ring"

// bells is the pod of the entities that set them.
const bells = "bells"

// bell is wound up, and then chimes some times.
type bell struct {
	ID    string        `json:"id"` // of the message that wound it; "" when it is hushed
	Every time.Duration `json:"every"`
	All   bool          `json:"all"`  // it chimes for each period that went by
	Left  int           `json:"left"` // so often it is to chime
	Last  time.Time     `json:"last"` // when it was last due
}

type (
	wind struct {
		ID     string
		Every  time.Duration
		Missed entity.Missed
		Times  int
	}
	chime   struct{ ID string }
	hush    struct{}
	oddBell struct{ N int }
	listen  struct{}
)

func planRing(p *plan, rng *rand.Rand) step {
	if !p.couriers {
		return step{}
	}
	return step{kind: ring, op: choose(rng, "wind", "wind", "hush", "odd", "passivate", "delete"), pod: bells, name: p.anyName(rng), n: rng.IntN(1000), who: rng.IntN(senders)}
}

func (w *process) openBells() {
	if !w.plan.couriers {
		return
	}
	_, err := w.pods.Start(context.Background(), entity.Type[bell]{Name: bells, Create: entity.Creation{By: []string{"wind"}}, Handlers: entity.Handlers[bell]{
		"wind": entity.On(func(c *entity.Context, b *bell, m wind) error {
			*b = bell{ID: m.ID, Every: m.Every, All: m.Missed == entity.MissedAll, Left: m.Times}
			c.Remind("chime", entity.Reminder{Every: m.Every, Missed: m.Missed, Message: chime{m.ID}})
			return nil
		}),
		"chime": entity.On(func(c *entity.Context, b *bell, m chime) error { return w.chimes(c, b, m) }),
		"hush": entity.On(func(c *entity.Context, b *bell, _ hush) error {
			b.ID, b.Left = "", 0
			c.Forget("chime")
			return nil
		}),
		"odd": entity.On(func(c *entity.Context, b *bell, m oddBell) error {
			b.ID = "odd"
			c.Remind([]string{"", "x"}[min(m.N, 1)], []entity.Reminder{
				{Message: chime{}}, {Message: listen{}}, {Message: chime{}, Every: time.Millisecond}, {Message: chime{}, Missed: 9},
				{Message: chime{}, At: time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)}, {Message: touch{}},
			}[m.N])
			return nil
		}),
		"listen": entity.Query(func(_ *entity.Context, b *bell, _ listen) (int, error) { return b.Left, nil }),
	}})
	w.must(err)
}

// chimes judges a reminder that comes.
func (w *process) chimes(c *entity.Context, b *bell, m chime) error {
	r, is := c.Reminder()
	gone := r.Due.Sub(b.Last)
	switch {
	case w.dead:
	case !is || r.Name != "chime" || b.ID != m.ID || b.Left <= 0:
		w.wrong("G6: the bell %s is %+v, and chimes for %s (%+v)", c.Name(), *b, m.ID, r)
	case c.Now().Before(r.Due):
		w.wrong("G3: the bell %s chimes at %v, and was to at %v", c.Name(), c.Now(), r.Due)
	case !b.Last.IsZero() && (gone <= 0 || gone%b.Every != 0 || b.All && gone != b.Every):
		w.wrong("G3: the bell %s chimes %v behind the last time, and was to every %v", c.Name(), gone, b.Every)
	}
	if (int(r.Due.Unix())+r.Attempt)%3 == 0 && r.Attempt < 3 {
		return errOnPurpose // it comes again
	}
	b.Last = r.Due
	if b.Left--; b.Left == 0 {
		b.ID = ""
		c.Forget("chime")
	}
	return nil
}

// ringBell carries out a step about bells.
func (w *process) ringBell(s step) {
	var msg any
	switch s.op {
	case "wind":
		msg = wind{s.id, time.Duration(1+s.n%2) * time.Second, entity.Missed(s.n % 3), 1 + s.n/2%2}
	case "hush":
		msg = hush{}
	case "odd":
		msg = oddBell{s.n % 6}
	case "passivate":
		msg = entity.Passivate()
	default:
		msg = entity.Delete(entity.Condition{})
	}
	w.tellCourier(bells, s.name, msg, func(err error) {
		w.note("%s of the bell %s: %v", s.op, s.name, err)
		if s.op == "odd" && err == nil {
			w.wrong("the bell %s has set the odd reminder %d", s.name, s.n%6)
		}
	})
}

// checkBells looks whether those that are to chime will, and no others.
func (w *process) checkBells() {
	if !w.plan.couriers {
		return
	}
	p, err := w.pods.Pod(bells)
	w.must(err)
	for i := range w.plan.names {
		key := persist.Key{Pod: bells, Name: entityName(i)}
		rows, err := w.disk.base.RowsOf(context.Background(), key)
		w.must(err)
		waits := slices.ContainsFunc(rows, func(r persist.Row) bool { return r.Kind == entity.ReminderRows })
		v, err := p.Get(context.Background(), key.Name)
		if errors.Is(err, entity.ErrNotFound) {
			if waits {
				w.wrong("G6: there is no bell %s, and it is to chime", key.Name)
			}
			continue
		}
		w.must(err)
		b, err := decoded[bell](&v)
		w.must(err)
		if waits != (b.Left > 0) {
			w.wrong("G5: the bell %s is %+v, and is to chime: %t", key.Name, b, waits)
		}
	}
}
