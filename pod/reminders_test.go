package pod_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// diary is an entity that writes down what it is reminded of.
type diary struct {
	Log []string `json:"log"`
}

type (
	// plan sets a reminder.
	plan struct {
		Name   string
		At     int // in seconds of the test's time
		Every  time.Duration
		Missed entity.Missed
		Ring   ring
		Then   string // "fail", "reject"
		Quiet  bool   // the state does not change
	}
	// ring is what it reminds of. An attempt up to Fails fails.
	ring struct {
		ID    string
		Fails int
		How   string
		Next  int    // not 0: the handler sets the reminder again, at that second
		Drop  string // not empty: the handler forgets this one
	}
	cancel struct{ Name string }
	glance struct{}
	many   struct {
		N, At int
		Drop  bool // one is forgotten for each that is set
	}
)

// dawn is when the tests' time begins.
var dawn = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func second(n int) time.Time { return dawn.Add(time.Duration(n) * time.Second) }

// writing makes a diary's handlers, whose state changes by write.
func writing(write func(c *entity.Context, d *diary, text string)) entity.Handlers[diary] {
	return entity.Handlers[diary]{
		"plan": entity.On(func(c *entity.Context, d *diary, m plan) error {
			r := entity.Reminder{At: second(m.At), Every: m.Every, Missed: m.Missed, Message: m.Ring}
			if m.At == 0 {
				r.At = time.Time{}
			}
			c.Remind(m.Name, r)
			if !m.Quiet {
				write(c, d, "plan "+m.Name)
			}
			switch m.Then {
			case "fail":
				return errors.New("on purpose")
			case "reject":
				return entity.Rejectf("on purpose")
			}
			return nil
		}),
		"ring": entity.Reply(func(c *entity.Context, d *diary, m ring) (string, error) {
			o, is := c.Reminder()
			if !is {
				write(c, d, m.ID+" by hand")
				return "by hand", nil
			}
			text := fmt.Sprintf("%s %d", m.ID, int(o.Due.Sub(dawn)/time.Second))
			if o.Attempt != 1 {
				text += fmt.Sprintf(" attempt %d", o.Attempt)
			}
			if c.Now().Before(o.Due) {
				text += " EARLY"
			}
			write(c, d, text)
			if m.Next != 0 {
				c.Remind(o.Name, entity.Reminder{At: second(m.Next), Message: ring{ID: m.ID}})
			}
			if m.Drop != "" {
				c.Forget(m.Drop)
			}
			if o.Attempt > m.Fails {
				return text, nil
			}
			switch m.How {
			case "panic":
				panic("on purpose")
			case "reject":
				return "", entity.Rejectf("on purpose")
			}
			return "", errors.New("on purpose")
		}),
		"cancel": entity.On(func(c *entity.Context, d *diary, m cancel) error {
			c.Forget(m.Name)
			return nil
		}),
		"glance": entity.Query(func(c *entity.Context, d *diary, m glance) ([]string, error) { return d.Log, nil }),
		"many": entity.On(func(c *entity.Context, d *diary, m many) error {
			for i := range m.N {
				name := fmt.Sprint(m.At, ".", i)
				c.Remind(name, entity.Reminder{At: second(m.At), Message: ring{ID: name}})
				if m.Drop {
					c.Forget(name)
				}
			}
			write(c, d, "many")
			return nil
		}),
	}
}

// diaries are the kinds of diary, which all do the same.
func diaries() map[string]entity.Kind[diary] {
	byState := writing(func(_ *entity.Context, d *diary, text string) { d.Log = append(d.Log, text) })
	return map[string]entity.Kind[diary]{
		"sync":  entity.Type[diary]{Name: "diaries", Handlers: byState},
		"async": entity.Type[diary]{Name: "diaries", Handlers: byState, Durability: entity.Async(20 * time.Millisecond)},
		"sourced": entity.Sourced[diary]{
			Name: "diaries", SnapshotEvery: 5,
			Commands: writing(func(c *entity.Context, _ *diary, text string) { c.Raise(written{text}) }),
			Events: entity.Events[diary]{
				"written": entity.Apply(func(d *diary, e written) { d.Log = append(d.Log, e.Text) }),
			},
		},
	}
}

type written struct{ Text string }

// desk is a world of diaries.
type desk struct {
	*world
	d *pod.Handle[diary]
}

// newDesk starts at a second of the test's time.
func newDesk(t testing.TB, seed uint64, store persist.PersistenceService, kind entity.Kind[diary], cfg pod.Config, at int) *desk {
	w := &desk{world: emptyWorld(t, seed, store, cfg)}
	w.until(at)
	var err error
	w.d, err = pod.Start(w.pods, kind)
	w.must(err)
	return w
}

// until lets time pass to half a second behind a second.
func (w *desk) until(at int) {
	if d := second(at).Add(time.Second / 2).Sub(w.exec.Now()); d > 0 {
		w.exec.RunFor(d)
	}
}

func (w *desk) send(name string, msg any) *actor.Promise { return w.sendTo(w.d.Ref(name), msg) }

func (w *desk) ask(name string, msg any) error {
	_, err := w.wait(w.send(name, msg))
	return err
}

func (w *desk) tell(name string, msg any) {
	w.t.Helper()
	w.must(w.ask(name, msg))
}

// log is what a diary holds, without what it planned.
func (w *desk) log(name string) []string {
	w.t.Helper()
	v, err := w.d.Get(context.Background(), name)
	w.must(err)
	return slices.DeleteFunc(v.State.Log, func(s string) bool { return strings.HasPrefix(s, "plan ") || s == "many" })
}

func (w *desk) rows() []persist.Row {
	w.t.Helper()
	rows, err := w.store.Rows(context.Background(), entity.ReminderRows, nil, 1_000_000)
	w.must(err)
	return rows
}

func forDiaries(t *testing.T, f func(t *testing.T, kind entity.Kind[diary])) {
	for name, kind := range diaries() {
		t.Run(name, func(t *testing.T) { f(t, kind) })
	}
}

// TestReminder: it comes when it is due, not before, once, to an entity that is
// not in memory, whose passivation it does not hinder.
func TestReminder(t *testing.T) {
	forDiaries(t, func(t *testing.T, kind entity.Kind[diary]) {
		store := persisttest.NewMemory()
		w := newDesk(t, 1, store, kind, pod.Config{IdleAfter: time.Second}, 0)
		defer w.close()
		w.tell("a", plan{Name: "r", At: 10, Ring: ring{ID: "x"}})
		w.tell("a", plan{Name: "soon", At: -5, Ring: ring{ID: "y"}})
		w.until(8)
		require.Zero(t, w.pods.Active())
		require.Equal(t, []string{"y -5"}, w.log("a"), "what is past is due at once")
		w.exec.RunFor(second(10).Sub(w.exec.Now()) - time.Millisecond)
		require.Equal(t, []string{"y -5"}, w.log("a"))
		require.Len(t, w.rows(), 1)
		w.until(10)
		require.Equal(t, []string{"y -5", "x 10"}, w.log("a"))
		require.Empty(t, w.rows())
		w.until(100)
		require.Equal(t, []string{"y -5", "x 10"}, w.log("a"))
		require.Zero(t, w.pods.Active())
		require.Zero(t, w.d.RemindersHeld())
		w.tell("a", ring{ID: "z"})
		require.Equal(t, "z by hand", w.log("a")[2])
	})
}

// TestReminderWithPeriod: it comes each period, counted from when it was due
// first, and without a time from when it was set.
func TestReminderWithPeriod(t *testing.T) {
	forDiaries(t, func(t *testing.T, kind entity.Kind[diary]) {
		w := newDesk(t, 2, persisttest.NewMemory(), kind, pod.Config{IdleAfter: time.Second}, 0)
		defer w.close()
		w.tell("a", plan{Name: "r", At: 10, Every: 20 * time.Second, Ring: ring{ID: "x"}})
		w.until(3)
		w.tell("b", plan{Name: "r", Every: 10 * time.Second, Ring: ring{ID: "y"}}) // at 3.5 s
		w.until(55)
		require.Equal(t, []string{"x 10", "x 30", "x 50"}, w.log("a"))
		require.Equal(t, []string{"y 13", "y 23", "y 33", "y 43", "y 53"}, w.log("b"))
		w.tell("a", cancel{"r"})
		w.tell("a", cancel{"none"})
		w.until(200)
		require.Len(t, w.log("a"), 3)
		require.Len(t, w.rows(), 1)
	})
}

// TestReminderSetByAFailedTurn: a turn that fails or is rejected sets none, nor
// does one whose commit fails.
func TestReminderSetByAFailedTurn(t *testing.T) {
	forDiaries(t, func(t *testing.T, kind entity.Kind[diary]) {
		store := persisttest.NewFaultStore(persisttest.NewMemory())
		w := newDesk(t, 3, store, kind, pod.Config{}, 0)
		defer w.close()
		require.Error(t, w.ask("new", plan{Name: "r", At: 5, Ring: ring{ID: "x"}, Then: "reject"}))
		w.tell("a", plan{Name: "kept", At: 20, Ring: ring{ID: "kept"}})
		require.Error(t, w.ask("a", plan{Name: "kept", At: 5, Ring: ring{ID: "x"}, Then: "fail"}))
		require.Error(t, w.ask("a", plan{Name: "r", At: 5, Ring: ring{ID: "x"}, Then: "reject"}))
		store.OnCommit(store.Commits()+1, persisttest.FailBefore)
		require.Error(t, w.ask("b", plan{Name: "r", At: 5, Ring: ring{ID: "x"}}))
		w.until(30)
		require.Equal(t, []string{"kept 20"}, w.log("a"))
		for _, n := range []string{"new", "b"} {
			_, err := w.d.Get(t.Context(), n)
			require.ErrorIs(t, err, entity.ErrNotFound)
		}
		require.Empty(t, w.rows())
	})
}

// TestReminderReplaced: one of the same name takes the place of the first, also
// when the handler sets it again; a turn that only sets one is durable, too.
func TestReminderReplaced(t *testing.T) {
	forDiaries(t, func(t *testing.T, kind entity.Kind[diary]) {
		store := persisttest.NewMemory()
		w := newDesk(t, 4, store, kind, pod.Config{}, 0)
		w.tell("a", plan{Name: "r", At: 10, Ring: ring{ID: "x"}})
		w.tell("a", plan{Name: "r", At: 20, Ring: ring{ID: "y", Next: 25}, Quiet: true})
		w.tell("a", plan{Name: "later", At: 40, Ring: ring{ID: "z"}, Quiet: true})
		w.tell("a", plan{Name: "later", At: 15, Ring: ring{ID: "z", Drop: "other"}, Quiet: true})
		w.tell("a", plan{Name: "other", At: 18, Ring: ring{ID: "no"}, Quiet: true})
		w.kill()
		w = newDesk(t, 5, store, kind, pod.Config{}, 0)
		defer w.close()
		w.until(60)
		require.Equal(t, []string{"z 15", "y 20", "y 25"}, w.log("a"))
		require.Empty(t, w.rows())
	})
}

// TestReminderDiesWithTheLife: a deleted entity is reminded of nothing, nor is
// the one that follows.
func TestReminderDiesWithTheLife(t *testing.T) {
	forDiaries(t, func(t *testing.T, kind entity.Kind[diary]) {
		w := newDesk(t, 6, persisttest.NewMemory(), kind, pod.Config{}, 0)
		defer w.close()
		for _, n := range []string{"a", "b"} {
			w.tell(n, plan{Name: "r", At: 10, Every: 10 * time.Second, Ring: ring{ID: "old"}})
			w.must(w.d.Delete(t.Context(), n))
		}
		w.tell("b", plan{Name: "r", At: 17, Ring: ring{ID: "new"}})
		require.Equal(t, 1, w.d.RemindersHeld())
		w.until(60)
		require.Equal(t, []string{"new 17"}, w.log("b"))
		_, err := w.d.Get(t.Context(), "a")
		require.ErrorIs(t, err, entity.ErrNotFound)
		require.Empty(t, w.rows())
	})
}

// TestReminderFails: a handler that fails is called again with growing pauses
// and is told the attempt, a rejection is final, and others do not wait.
func TestReminderFails(t *testing.T) {
	forDiaries(t, func(t *testing.T, kind entity.Kind[diary]) {
		store := persisttest.NewMemory()
		cfg := pod.Config{RemindAtOnce: 1, RemindersHeld: 2}
		w := newDesk(t, 7, store, kind, cfg, 0)
		w.tell("a", plan{Name: "r", At: 10, Ring: ring{ID: "x", Fails: 3, How: "panic"}})
		w.tell("a", plan{Name: "other", At: 11, Ring: ring{ID: "y"}})
		w.tell("b", plan{Name: "r", At: 11, Ring: ring{ID: "z"}})
		w.until(12)
		require.Equal(t, []string{"y 11"}, w.log("a"))
		require.Equal(t, []string{"z 11"}, w.log("b"))
		w.kill() // two attempts were made, after 1 s and 2 s more; the next comes at 13 s
		w = newDesk(t, 8, store, kind, cfg, 12)
		w.until(16)
		require.Equal(t, []string{"y 11"}, w.log("a"))
		w.until(17)
		require.Equal(t, []string{"y 11", "x 10 attempt 4"}, w.log("a"))
		require.Empty(t, w.rows())
		w.close()
	})
}

// letters collects the dead letters of reminders.
func (w *desk) letters() *[]string {
	var out []string
	w.sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) {
		if u, is := z.Message.Payload.(entity.Undelivered); is {
			out = append(out, fmt.Sprintf("%s %s %d: %v", z.To, u.Type, int(w.exec.Now().Sub(dawn)/time.Second), z.Reason))
		}
	})
	return &out
}

// TestReminderGivenUp: the tenth failure makes a dead letter, and one with a
// period goes on.
func TestReminderGivenUp(t *testing.T) {
	forDiaries(t, func(t *testing.T, kind entity.Kind[diary]) {
		w := newDesk(t, 9, persisttest.NewMemory(), kind, pod.Config{IdleAfter: 10 * time.Second}, 0)
		defer w.close()
		letters := w.letters()
		w.tell("once", plan{Name: "r", At: 10, Ring: ring{ID: "x", Fails: 1000}})
		w.tell("hourly", plan{Name: "r", At: 10, Every: time.Hour, Ring: ring{ID: "x", Fails: 9}})
		w.tell("daily", plan{Name: "r", At: 10, Every: 24 * time.Hour, Ring: ring{ID: "x", Fails: 1000, How: "reject"}})
		w.until(10 + 511 - 2)
		require.Len(t, *letters, 1)
		require.Contains(t, (*letters)[0], "diaries/daily ring 10: ")
		require.Contains(t, (*letters)[0], "rejected: on purpose")
		w.until(10 + 511 + 2)
		require.Len(t, *letters, 2)
		require.Contains(t, (*letters)[1], "diaries/once ring 521: ")
		require.Contains(t, (*letters)[1], `its reminder "r", due at 2030-01-01T00:00:10Z, failed at attempt 10`)
		require.Equal(t, []string{"x 10 attempt 10"}, w.log("hourly"))
		w.until(10 + 24*3600 + 1)
		require.Len(t, *letters, 3)
		require.Empty(t, w.log("once"))
		require.Empty(t, w.log("daily"))
		require.Len(t, w.log("hourly"), 24)
		require.Equal(t, "x 3610 attempt 10", w.log("hourly")[1])
		require.Len(t, w.rows(), 2)
	})
}

// TestReminderMissed: what went by while no server ran.
func TestReminderMissed(t *testing.T) {
	forDiaries(t, func(t *testing.T, kind entity.Kind[diary]) {
		store := persisttest.NewMemory()
		w := newDesk(t, 10, store, kind, pod.Config{}, 0)
		for name, m := range map[string]entity.Missed{"once": entity.MissedOnce, "all": entity.MissedAll, "skip": entity.MissedSkip} {
			w.tell(name, plan{Name: "r", At: 10, Every: 10 * time.Second, Missed: m, Ring: ring{ID: "x"}})
			w.tell(name, plan{Name: "single", At: 12, Missed: m, Ring: ring{ID: "y"}})
		}
		w.tell("late", plan{Name: "r", At: 42, Every: time.Hour, Missed: entity.MissedSkip, Ring: ring{ID: "x"}})
		w.tell("lost", plan{Name: "r", At: -60, Every: time.Hour, Missed: entity.MissedSkip, Ring: ring{ID: "x"}})
		w.kill()
		w = newDesk(t, 11, store, kind, pod.Config{}, 47)
		w.until(61)
		sorted := func(name string) []string { l := w.log(name); slices.Sort(l); return l }
		require.Equal(t, []string{"x 10", "x 50", "x 60", "y 12"}, sorted("once"))
		require.Equal(t, []string{"x 10", "x 20", "x 30", "x 40", "x 50", "x 60", "y 12"}, sorted("all"))
		require.Equal(t, []string{"x 50", "x 60", "y 12"}, sorted("skip"))
		require.Equal(t, []string{"x 42"}, sorted("late"), "five seconds of an hour")
		require.Empty(t, sorted("lost"), "it went by before it was set")
		w.until(3542)
		require.Equal(t, []string{"x 3540"}, sorted("lost"))
		w.close()
	})
}

// TestReminderOfTheUnreadable: an entity that is quarantined is not reminded,
// and is once it can be read; a row that cannot be read is a reason for
// quarantine.
func TestReminderOfTheUnreadable(t *testing.T) {
	forDiaries(t, func(t *testing.T, kind entity.Kind[diary]) {
		store := persisttest.NewMemory()
		w := newDesk(t, 12, store, kind, pod.Config{IdleAfter: time.Second}, 0)
		w.tell("a", plan{Name: "r", At: 10, Ring: ring{ID: "x"}})
		w.tell("a", plan{Name: "tick", At: 10, Every: 10 * time.Second, Ring: ring{ID: "t"}})
		w.until(5)
		w.kill()
		good := w.rows()[0]
		store.DamageRow(persist.Row{Kind: entity.ReminderRows, Key: persist.Key{Pod: "diaries", Name: "a"}, ID: "r"})
		w = newDesk(t, 13, store, kind, pod.Config{IdleAfter: time.Second}, 5)
		w.until(30)
		require.Len(t, w.pods.Quarantined(), 1)
		require.ErrorContains(t, w.pods.Quarantined()[0].Reason, `its reminder row "r"`)
		require.Zero(t, w.d.RemindersHeld())
		w.tell("b", plan{Name: "r", At: 31, Ring: ring{ID: "x"}})
		w.until(32)
		require.Equal(t, []string{"x 31"}, w.log("b"), "others are reminded")
		require.NoError(t, store.Import(t.Context(), persist.Batch{Rows: []persist.Row{good}}))
		require.NoError(t, w.ask("a", entity.Retry()))
		w.until(41)
		l := w.log("a")
		slices.Sort(l)
		require.Equal(t, []string{"t 10", "t 40", "x 10"}, l)
		w.close()
	})
}

// TestReminderOfAnUnknownMessage: a program that lacks the message makes a dead
// letter of it after the last attempt, and one that has it again before does
// not.
func TestReminderOfAnUnknownMessage(t *testing.T) {
	kind := diaries()["sync"].(entity.Type[diary])
	without := entity.Type[diary]{Name: "diaries", Handlers: entity.Handlers[diary]{"plan": kind.Handlers["plan"]}}
	store := persisttest.NewMemory()
	w := newDesk(t, 14, store, kind, pod.Config{}, 0)
	w.tell("a", plan{Name: "r", At: 10, Ring: ring{ID: "x"}})
	w.tell("b", plan{Name: "r", At: 500, Ring: ring{ID: "x"}})
	w.kill()
	w = newDesk(t, 15, store, without, pod.Config{}, 0)
	letters := w.letters()
	w.until(10 + 512)
	require.Len(t, *letters, 1)
	require.Contains(t, (*letters)[0], `no such message: pod diaries does not know "ring"`)
	w.kill()
	w = newDesk(t, 16, store, kind, pod.Config{}, 522)
	defer w.close()
	w.until(600)
	require.Empty(t, w.log("a"))
	require.Equal(t, []string{"x 500 attempt 6"}, w.log("b"))
}

// TestReminderRefused: what cannot be kept fails the turn and says why.
func TestReminderRefused(t *testing.T) {
	w := newDesk(t, 17, persisttest.NewMemory(), diaries()["sync"], pod.Config{}, 0)
	defer w.close()
	for text, m := range map[string]any{
		"the period is 10ms":       plan{Name: "r", Every: 10 * time.Millisecond},
		"bad name":                 plan{Name: "..", At: 5},
		"want a time from 1970":    plan{Name: "r", At: -3_000_000_000},
		"to 2199":                  plan{Name: "r", At: 6_000_000_000},
		"Missed is 9":              plan{Name: "r", At: 5, Missed: 9},
		"at most 65536 are kept":   plan{Name: "r", At: 5, Ring: ring{ID: strings.Repeat("x", 1<<17)}},
		"1000 reminders already":   many{N: 1001, At: 5},
		`"glance" is a query`:      badMessage{glance{}},
		"no handler for the Go":    badMessage{7},
		"only the type's own Go v": badMessage{entity.WithID("x", ring{})},
	} {
		if b, is := m.(badMessage); is {
			require.ErrorContains(t, w.reject(b.m), text)
			continue
		}
		require.ErrorContains(t, w.ask("a", m), text)
	}
	w.tell("a", many{N: 1001, At: 5, Drop: true})
	w.tell("a", many{N: 1000, At: 100_000})
	require.ErrorContains(t, w.ask("a", plan{Name: "r", At: 5}), "1000 reminders already")
	w.tell("a", plan{Name: "100000.7", At: 5}) // it takes another's place
	require.Len(t, w.rows(), 1000)

	kind := diaries()["sync"].(entity.Type[diary])
	kind.Name, kind.Durability = "fleeting", entity.Volatile()
	fleeting, err := pod.Start(w.pods, kind)
	w.must(err)
	_, err = w.wait(w.sendTo(fleeting.Ref("a"), plan{Name: "r", At: 5}))
	require.ErrorContains(t, err, "pod fleeting is volatile")

	sourced := diaries()["sourced"].(entity.Sourced[diary])
	sourced.Name = "sourced"
	events, err := pod.Start(w.pods, sourced)
	w.must(err)
	_, err = w.wait(w.sendTo(events.Ref("a"), plan{Name: "r", At: 5, Quiet: true}))
	require.ErrorContains(t, err, "without an event that creates the entity")
}

type badMessage struct{ m any }

// reject has an entity of a type of its own be reminded of a message.
func (w *desk) reject(msg any) error {
	kind := entity.Type[diary]{
		Name: fmt.Sprintf("bad%d", len(w.pods.All())),
		Handlers: entity.Handlers[diary]{
			"ring":   entity.On(func(*entity.Context, *diary, ring) error { return nil }),
			"glance": entity.Query(func(*entity.Context, *diary, glance) (int, error) { return 0, nil }),
			"go": entity.On(func(c *entity.Context, _ *diary, _ cancel) error {
				c.Remind("r", entity.Reminder{Message: msg})
				return nil
			}),
		},
	}
	h, err := pod.Start(w.pods, kind)
	w.must(err)
	_, err = w.wait(w.sendTo(h.Ref("a"), cancel{}))
	return err
}
