package pod_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// TestRemindersInOneMinute: a hundred thousand that are due within a minute come
// once each over a crash in its middle, none early.
func TestRemindersInOneMinute(t *testing.T) {
	n := 100_000 / raceDivisor
	if testing.Short() {
		n = 5_000
	}
	store := persisttest.NewMemory()
	cfg := pod.Config{IdleAfter: time.Second, MaxActive: 1000, RemindersHeld: n / 10}
	kind := diaries()["sync"]
	w := newDesk(t, 1, store, kind, cfg, 0)
	for i := range n {
		w.send(fmt.Sprint("e", i), plan{Name: "r", At: 600 + i%60, Ring: ring{ID: "x"}})
		if i%500 == 0 {
			w.exec.RunFor(time.Millisecond)
		}
	}
	w.until(500)
	require.Len(t, w.rows(), n)
	w.until(630)
	require.NotEmpty(t, w.rows())
	at := int(w.exec.Now().Sub(dawn) / time.Second)
	for range 100 {
		w.exec.Step()
	}
	w.kill()
	w = newDesk(t, 2, store, kind, cfg, at)
	w.until(700)
	require.Empty(t, w.rows())
	require.Zero(t, w.d.RemindersHeld())
	for after := ""; ; {
		views, next, err := w.d.List(t.Context(), persist.ListOptions{After: after, Limit: 1000})
		w.must(err)
		for _, v := range views {
			i, err := strconv.Atoi(v.Name[1:])
			w.must(err)
			require.Equal(t, []string{"plan r", fmt.Sprint("x ", 600+i%60)}, v.State.Log, v.Name)
		}
		if n -= len(views); next == "" {
			break
		}
		after = next
	}
	require.Zero(t, n)
	w.close()
}

// counting counts what is read of rows.
type counting struct {
	persist.PersistenceService
	rows   int
	failed int // so many reads fail first
}

func (c *counting) Rows(ctx context.Context, kind string, after *persist.Row, limit int) ([]persist.Row, error) {
	if c.failed > 0 && kind == entity.ReminderRows {
		c.failed--
		return nil, fmt.Errorf("%w: for a while", persist.ErrUnavailable)
	}
	rows, err := c.PersistenceService.Rows(ctx, kind, after, limit)
	c.rows += len(rows)
	return rows, err
}

// TestRemindersFarOff: those whose time is not near take no memory, nor are they
// read over and over; each comes on its day.
func TestRemindersFarOff(t *testing.T) {
	store := &counting{PersistenceService: persisttest.NewMemory()}
	w := newDesk(t, 3, store, diaries()["sync"], pod.Config{IdleAfter: time.Minute}, 0)
	const day = 24 * 3600
	for i := range 1000 {
		w.send(fmt.Sprint("e", i), plan{Name: "r", At: day * (1 + i%5), Ring: ring{ID: "x"}})
	}
	w.until(100)
	require.Zero(t, w.d.RemindersHeld())
	store.rows = 0
	w.until(day - 3600)
	require.Zero(t, store.rows)
	require.Zero(t, w.d.RemindersHeld())
	w.until(day - 30)
	require.Equal(t, 1000, store.rows)
	require.Equal(t, 200, w.d.RemindersHeld())
	w.tell("soon", plan{Name: "r", At: day - 10, Ring: ring{ID: "y"}})
	w.until(day + 1)
	require.Equal(t, []string{fmt.Sprint("y ", day-10)}, w.log("soon"))
	require.Len(t, w.rows(), 800)
	require.Zero(t, w.d.RemindersHeld())
	w.kill()
	w = newDesk(t, 4, store, diaries()["sync"], pod.Config{IdleAfter: time.Minute}, day+10)
	defer w.close()
	store.rows = 0
	w.until(5*day + 1)
	require.Empty(t, w.rows())
	require.Less(t, store.rows, 1000*6)
	for i := range 1000 {
		require.Equal(t, []string{fmt.Sprint("x ", day*(1+i%5))}, w.log(fmt.Sprint("e", i)))
	}
}

// TestRemindersMoreThanAreHeld: with room for a few, and reads that fail at
// first, many come when they are due.
func TestRemindersMoreThanAreHeld(t *testing.T) {
	forSeeds(t, 30, func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		store := &counting{PersistenceService: persisttest.NewMemory()}
		cfg := pod.Config{IdleAfter: time.Second, RemindAtOnce: 1 + rng.IntN(4), RemindersHeld: 8 + rng.IntN(8)}
		w := newDesk(t, seed, store, diaries()["sync"], cfg, 0)
		at := map[string]int{}
		for i := range 200 {
			name := fmt.Sprint("e", i%50)
			at[fmt.Sprint(name, i)] = 50 + rng.IntN(30)*rng.IntN(10)
			w.send(name, plan{Name: fmt.Sprint(i), At: at[fmt.Sprint(name, i)], Ring: ring{ID: fmt.Sprint(name, i)}})
		}
		w.until(20)
		require.LessOrEqual(t, w.d.RemindersHeld(), cfg.RemindersHeld)
		if rng.IntN(2) == 0 {
			w.kill()
			store.failed = rng.IntN(5)
			w = newDesk(t, seed+1000, store, diaries()["sync"], cfg, 30)
		}
		for now := 31; now < 350; now += 1 + rng.IntN(20) {
			w.until(now)
			require.LessOrEqual(t, w.d.RemindersHeld(), cfg.RemindersHeld)
			for i := range 200 {
				name := fmt.Sprint("e", i%50)
				due := at[fmt.Sprint(name, i)]
				require.Equal(t, due <= now, slices.Contains(w.log(name), fmt.Sprint(name, i, " ", due)), "seed %d: at %d, due at %d", seed, now, due)
			}
		}
		w.until(400)
		require.Empty(t, w.rows())
		for i := range 50 {
			require.Len(t, w.log(fmt.Sprint("e", i)), 4)
		}
		w.close()
	})
}

// TestReminderOfAStuckEntity: entities that do not answer hold up others for a
// minute at most, even when there are as many as are reminded at a time.
func TestReminderOfAStuckEntity(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newDesk(t, 5, store, diaries()["async"], pod.Config{RemindAtOnce: 2}, 0)
	for i := range 5 {
		w.tell(fmt.Sprint("e", i), plan{Name: "r", At: 10 + i, Ring: ring{ID: "x"}})
	}
	w.until(5)
	mend := store.OnUnits(func(u persist.Unit) bool { return u.Key.Name == "e0" || u.Key.Name == "e1" }, persisttest.RefuseUnit)
	w.until(69)
	require.Empty(t, w.log("e2"))
	w.until(73)
	for i := 2; i < 5; i++ {
		require.Len(t, w.log(fmt.Sprint("e", i)), 1)
	}
	mend()
	w.until(100)
	require.Equal(t, []string{"x 10"}, w.log("e0"))
	require.Empty(t, w.rows())
	w.close()
}

// TestReminderWhoseCommitIsRefused: a store that refuses what the handler made
// counts as a failure of the handler.
func TestReminderWhoseCommitIsRefused(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	w := newDesk(t, 6, store, diaries()["sync"], pod.Config{}, 0)
	defer w.close()
	letters := w.letters()
	w.tell("a", plan{Name: "r", At: 10, Ring: ring{ID: "x"}})
	store.OnUnits(func(u persist.Unit) bool { return u.Key.Name == "a" && u.Record != nil }, persisttest.RefuseUnit)
	w.until(10 + 511 + 5)
	require.Empty(t, w.rows())
	require.Len(t, *letters, 1)
	require.Contains(t, (*letters)[0], "failed at attempt 10")
	require.Empty(t, w.log("a"))
}

// TestReminderOfUnknownOutcome: a reminder whose commit was applied though nobody
// was told so comes, also when its entity cannot be read at first.
func TestReminderOfUnknownOutcome(t *testing.T) {
	forDiaries(t, func(t *testing.T, kind entity.Kind[diary]) {
		store := persisttest.NewFaultStore(persisttest.NewMemory())
		w := newDesk(t, 7, store, kind, pod.Config{IdleAfter: time.Second}, 0)
		defer w.close()
		created := false
		store.OnUnits(func(u persist.Unit) bool {
			creates := u.Key.Name == "a" && u.Expect == 0
			created = created || creates
			return creates
		}, persisttest.UnknownApplied)
		readable := store.OnLoads(func(k persist.Key) bool { return created && k.Name == "a" }, persist.ErrUnavailable)
		require.ErrorIs(t, w.ask("a", plan{Name: "r", At: 20, Ring: ring{ID: "x"}}), persist.ErrUnknown)
		w.until(10)
		readable()
		w.until(21)
		require.Equal(t, []string{"x 20"}, w.log("a"))
		require.Empty(t, w.rows())
	})
}

// book is what TestRemindersOverCrashes knows.
type book struct {
	acked map[string]plan // of the entity and the message
	all   map[string]plan
}

// TestRemindersOverCrashes: reminders are set and come while commits fail, reads
// fail, the power is cut at any step. All that was acknowledged comes, once,
// none is early.
func TestRemindersOverCrashes(t *testing.T) {
	for name, kind := range diaries() {
		t.Run(name, func(t *testing.T) {
			forSeeds(t, 60, func(t *testing.T, seed uint64) { remindersOverCrashes(t, seed, kind) })
		})
	}
}

func remindersOverCrashes(t *testing.T, seed uint64, kind entity.Kind[diary]) {
	rng := rand.New(rand.NewPCG(seed, 9))
	crash := persisttest.NewCrashStore()
	cfg := pod.Config{IdleAfter: 20 * time.Millisecond, MaxActive: 2, RemindAtOnce: 1 + rng.IntN(3), RemindersHeld: 4 + rng.IntN(20)}
	b := book{map[string]plan{}, map[string]plan{}}
	now, count := 0, 0
	for range 4 {
		faults := persisttest.NewFaultStore(crash)
		w := newDesk(t, seed*8+uint64(now), faults, kind, cfg, now)
		crash.Pause = faults.Pause
		faults.Pause = nil
		type sent struct {
			key   string
			plan  plan
			reply *actor.Promise
		}
		var under []sent
		for range 15 {
			name := fmt.Sprint("e", rng.IntN(3))
			count++
			p := plan{Name: fmt.Sprint("r", count), At: now + 1 + rng.IntN(20), Quiet: rng.IntN(2) == 0, Ring: ring{ID: fmt.Sprint("x", count)}}
			if rng.IntN(4) == 0 {
				p.Every, p.Missed = time.Duration(1+rng.IntN(5))*time.Second, entity.MissedAll
			}
			if rng.IntN(4) == 0 {
				p.Ring.Fails = 1 + rng.IntN(3)
			}
			key := name + " " + p.Ring.ID
			b.all[key] = p
			under = append(under, sent{key, p, w.send(name, p)})
			switch rng.IntN(6) {
			case 0:
				failOnce(faults, rng)
			case 1:
				now += rng.IntN(3)
				w.until(now)
			case 2:
				w.send(name, entity.Passivate())
			}
		}
		now += rng.IntN(20)
		w.until(now)
		for range rng.IntN(200) {
			w.exec.Step()
		}
		for _, s := range under {
			if s.reply.Done() {
				if _, err := w.wait(s.reply); err == nil {
					b.acked[s.key] = s.plan
				}
			}
		}
		now = int(w.exec.Now().Sub(dawn)/time.Second) + rng.IntN(10)
		crash = crash.Crash(rng.Uint64())
		w.kill()
	}
	w := newDesk(t, seed+1, crash, kind, cfg, now)
	w.until(now + 120)
	now += 120
	for i := range 3 {
		name := fmt.Sprint("e", i)
		if v, err := w.d.Get(context.Background(), name); err == nil {
			b.check(t, seed, name, v.State.Log, now)
		}
	}
	if _, isAsync := kind.(entity.Type[diary]); !isAsync || kind.(entity.Type[diary]).Durability == entity.Sync() {
		for key, p := range b.acked {
			name, id, _ := strings.Cut(key, " ")
			log := w.log(name)
			require.True(t, slices.ContainsFunc(log, func(s string) bool { return strings.HasPrefix(s, id+" ") }), "seed %d: %s of %s has not come: %+v: %v", seed, id, name, p, log)
		}
	}
	for _, row := range w.rows() {
		require.NotZero(t, b.all[row.Key.Name+" x"+row.ID[1:]].Every, "seed %d: %s of %s is still there", seed, row.ID, row.Key.Name)
	}
	w.close()
}

// check looks whether a diary holds each occurrence once, and all of a reminder
// up to the last.
func (b *book) check(t *testing.T, seed uint64, name string, log []string, now int) {
	t.Helper()
	next := map[string]int{}
	for _, line := range log {
		require.NotContains(t, line, "EARLY", "seed %d", seed)
		var id string
		var due int
		if n, _ := fmt.Sscanf(line, "%s %d", &id, &due); n != 2 {
			continue // what it planned
		}
		p, known := b.all[name+" "+id]
		require.True(t, known, "seed %d: %s has %s", seed, name, line)
		if next[id] == 0 {
			next[id] = p.At
		}
		require.Equal(t, next[id], due, "seed %d: %s: %v", seed, name, log)
		next[id] += int(p.Every / time.Second)
		if p.Every == 0 {
			next[id] = -1 // it must not come again
		}
	}
	for id, due := range next {
		if p := b.all[name+" "+id]; p.Every > 0 && p.Ring.Fails == 0 {
			require.Greater(t, due, now, "seed %d: %s of %s stopped: %v", seed, id, name, log)
		}
	}
}

// alarmModel is what reminders amount to.
type alarmModel struct {
	due    int
	every  int
	missed entity.Missed
	id     string
}

// TestRemindersAgainstAModel: setting, forgetting, deleting, passivating,
// restarting after a while and waiting, in any order, does what a simple model
// says.
func TestRemindersAgainstAModel(t *testing.T) {
	for name, kind := range diaries() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) { remindersAgainstAModel(t, rt, kind) })
		})
	}
}

func remindersAgainstAModel(t *testing.T, rt *rapid.T, kind entity.Kind[diary]) {
	store := persisttest.NewMemory()
	cfg := pod.Config{
		IdleAfter: rapid.SampledFrom([]time.Duration{time.Second, time.Hour}).Draw(rt, "idle"), RemindAtOnce: rapid.IntRange(1, 3).Draw(rt, "at once"),
		RemindersHeld: rapid.IntRange(2, 10).Draw(rt, "held"),
	}
	now, count := 0, 0
	set := map[string]map[string]*alarmModel{} // by entity and name
	log := map[string][]string{}
	w := newDesk(t, 1, store, kind, cfg, now)
	defer func() { w.kill() }()
	come := func(late bool) { // up to now
		for e, all := range set {
			for n, m := range all {
				for m.due <= now {
					if m.missed == entity.MissedSkip && m.every > 0 && late && min(m.every, 120) < 2*(now-m.due)+1 {
						m.due += m.every
						continue
					}
					log[e] = append(log[e], fmt.Sprint(m.id, " ", m.due))
					if m.every == 0 {
						delete(all, n)
						break
					}
					m.due += m.every
					for late && m.missed == entity.MissedOnce && m.due <= now {
						m.due += m.every
					}
				}
			}
		}
	}
	for range rapid.IntRange(1, 30).Draw(rt, "steps") {
		e := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "entity")
		n := rapid.SampledFrom([]string{"r", "s", "t"}).Draw(rt, "name")
		switch rapid.IntRange(0, 9).Draw(rt, "what") {
		case 0, 1, 2, 3:
			count++
			m := &alarmModel{due: now + rapid.IntRange(1, 30).Draw(rt, "in"), id: fmt.Sprint("x", count)}
			m.every = rapid.SampledFrom([]int{0, 0, 1, 7, 20}).Draw(rt, "every")
			m.missed = entity.Missed(rapid.IntRange(0, 2).Draw(rt, "missed"))
			w.tell(e, plan{Name: n, At: m.due, Every: time.Duration(m.every) * time.Second, Missed: m.missed, Ring: ring{ID: m.id}})
			if set[e] == nil {
				set[e] = map[string]*alarmModel{}
			}
			set[e][n] = m
		case 4:
			if set[e] != nil {
				w.tell(e, cancel{n})
				delete(set[e], n)
			}
		case 5:
			if set[e] != nil && rapid.Bool().Draw(rt, "delete") {
				w.must(w.d.Delete(t.Context(), e))
				delete(set, e)
				delete(log, e)
			}
		case 6:
			w.send(e, entity.Passivate())
		case 7:
			w.kill()
			now = int(w.exec.Now().Sub(dawn)/time.Second) + rapid.IntRange(0, 40).Draw(rt, "down")
			w = newDesk(t, uint64(count+100), store, kind, cfg, now)
			w.exec.RunFor(400 * time.Millisecond)
			come(true)
		default:
			for range rapid.IntRange(0, 30).Draw(rt, "wait") {
				now++
				w.until(now)
				come(false)
			}
		}
		for e := range set {
			got, want := w.log(e), slices.Clone(log[e])
			slices.Sort(got)
			slices.Sort(want)
			require.Equal(rt, strings.Join(want, ", "), strings.Join(got, ", "), "%s at %d", e, now)
		}
	}
	waiting := 0
	for _, all := range set {
		waiting += len(all)
	}
	require.Len(rt, w.rows(), waiting)
}
