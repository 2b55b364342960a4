package pod_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
	"github.com/twinsrv/twinsrv/snapshot"
)

// TestHandlerThatMayPassIsTriedAgain: a receiver whose handler fails with an error that may
// pass has not had its last word.
func TestHandlerThatMayPassIsTriedAgain(t *testing.T) {
	store := persisttest.NewMemory()
	fail := true
	typ := accounts(func(t *entity.Type[account]) {
		t.Handlers["deposit"] = entity.On(func(_ *entity.Context, a *account, m deposit) error {
			if fail {
				return fmt.Errorf("asking the bank: %w", actor.ErrTimeout)
			}
			a.Balance += m.Amount
			a.Got = append(a.Got, m.From+":"+m.ID)
			return nil
		})
	})
	b := newBank(t, 1, store, typ, pod.Config{})
	letters := b.deadLetters()
	for _, n := range []string{"ann", "bob"} {
		_, err := b.ask(n, open{100})
		b.must(err)
	}
	_, err := b.ask("ann", transfer{"t", "bob", 40})
	b.must(err)
	b.exec.RunFor(time.Second / 2)
	fail = false
	b.exec.RunFor(time.Minute)
	n := 0
	for _, z := range *letters {
		if _, ok := z.Message.Payload.(entity.Undelivered); ok {
			n++
		}
	}
	require.Empty(t, b.rows("outbox"))
	require.True(t, b.get("bob").Balance == 140 || n == 1, "neither an effect (balance %d) nor a dead letter (%d)", b.get("bob").Balance, n)
	b.close()
}

// TestChainAtStart: a receiver that sends on to a pod which is not started yet takes
// the message once it is.
func TestChainAtStart(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	mem := store
	third := ledgers(func(t *entity.Type[ledger]) { t.Name = "third" })
	second := ledgers(func(t *entity.Type[ledger]) {
		t.Name = "second"
		t.Handlers["tally"] = entity.On(func(c *entity.Context, l *ledger, m tally) error {
			l.accept(m.ID)
			c.SendOnce("third", "z", add{m.ID})
			return nil
		})
	})
	first := ledgers(func(t *entity.Type[ledger]) {
		t.Handlers["tally"] = entity.On(func(c *entity.Context, l *ledger, m tally) error {
			l.accept(m.ID)
			c.SendOnce("second", "y", tally{"z", m.ID})
			return nil
		})
	})
	w := newWorld(t, 1, mem, first, pod.Config{})
	h2, err := pod.Start(w.pods, second)
	w.must(err)
	_, err = pod.Start(w.pods, third)
	w.must(err)
	_, err = w.wait(func() *actor.Promise {
		p := w.sys.NewPromise()
		if err := h2.Ref("y").Post(actor.Message{Payload: add{"there"}, Reply: p}); err != nil {
			p.Fail(err)
		}
		return p
	}())
	w.must(err)
	w.exec.RunFor(time.Hour) // y leaves memory
	allow := mem.OnLoads(func(k persist.Key) bool { return k.Name == "y" }, persist.ErrUnavailable)
	_, err = w.ask("x", tally{"z", "m"})
	w.must(err)
	w.exec.RunFor(time.Second)
	w.kill()
	allow()
	w = newWorld(t, 2, mem, first, pod.Config{})
	h2, err = pod.Start(w.pods, second)
	w.must(err)
	w.exec.RunFor(10 * time.Millisecond) // the third pod is slower
	h3, err := pod.Start(w.pods, third)
	w.must(err)
	w.exec.RunFor(time.Minute)
	v, err := h3.Get(t.Context(), "z")
	require.NoError(t, err, "the message is lost")
	require.Equal(t, []string{"m"}, v.State.Log)
	w.close()
}

// TestOwingEntityIsWokenUntilItDelivers: an entity that was stopped with messages
// to deliver is woken again and again while the store is away.
func TestOwingEntityIsWokenUntilItDelivers(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	b := newBank(t, 1, store, accounts(nil), pod.Config{IdleAfter: time.Second})
	defer b.close()
	for _, n := range []string{"ann", "bob"} {
		_, err := b.ask(n, open{100})
		b.must(err)
	}
	b.exec.RunFor(10 * time.Second)
	allow := store.OnLoads(func(k persist.Key) bool { return k.Name == "bob" }, persist.ErrUnavailable)
	_, err := b.ask("ann", transfer{"t", "bob", 40})
	b.must(err)
	b.exec.RunFor(time.Second)
	allow()
	allow = store.OnLoads(func(k persist.Key) bool { return k.Pod == "accounts" }, persist.ErrUnavailable)
	ref, err := b.sys.Lookup("/user/pods/accounts/ann")
	b.must(err)
	ref.Stop()
	b.exec.RunFor(5 * time.Second)
	allow()
	b.exec.RunFor(time.Hour)
	require.Empty(t, b.rows("outbox"), "nobody delivers it")
}

// TestMessageToItselfRevivesNobody: what an entity sends itself reaches this life
// only.
func TestMessageToItselfRevivesNobody(t *testing.T) {
	b := newBank(t, 1, persisttest.NewMemory(), accounts(nil), pod.Config{})
	defer b.close()
	_, err := b.ask("ann", open{100})
	b.must(err)
	for seed := range 40 {
		p := b.send("ann", volley{"v", "ann", 100})
		for range seed {
			b.exec.Step()
		}
		q := b.send("ann", entity.Discard())
		_, _ = b.wait(p)
		_, err = b.wait(q)
		b.exec.RunFor(time.Second)
		if err != nil {
			continue
		}
		_, err = b.a.Get(t.Context(), "ann")
		require.ErrorIs(t, err, entity.ErrNotFound, "step %d", seed)
		_, err = b.ask("ann", open{100})
		b.must(err)
	}
}

// TestOwingEntityReadsItselfOnceAPause: messages that come meanwhile make it
// no more often.
func TestOwingEntityReadsItselfOnceAPause(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	b := newBank(t, 1, store, accounts(nil), pod.Config{IdleAfter: -1})
	for _, n := range []string{"ann", "bob"} {
		_, err := b.ask(n, open{100})
		b.must(err)
	}
	b.exec.RunFor(time.Second)
	loads := 0
	store.OnLoads(func(k persist.Key) bool {
		if k.Name == "ann" {
			loads++
		}
		return k.Pod == "accounts"
	}, persist.ErrUnavailable)
	_, err := b.ask("ann", transfer{"t", "bob", 40}) // in memory: works
	b.must(err)
	store.OnCommit(store.Commits()+1, persisttest.FailBefore)
	_, err = b.ask("ann", volley{"v", "carl", 2})
	require.Error(t, err)
	rate := func() int {
		before := loads
		b.exec.RunFor(10 * time.Second)
		return (loads - before) / 10
	}
	first := rate()
	for i := range 100 {
		b.send("ann", open{i})
		b.exec.RunFor(7 * time.Millisecond)
	}
	second := rate()
	require.LessOrEqual(t, second, first+2)
	b.kill()
}

// TestSendOnceTooLarge: a message that the store would not take fails the turn.
func TestSendOnceTooLarge(t *testing.T) {
	type blob struct{ S string }
	type carry struct{ N int }
	for name, d := range map[string]entity.Durability{"sync": entity.Sync(), "async": entity.Async(5 * time.Millisecond)} {
		t.Run(name, func(t *testing.T) {
			store := memory.Open(memory.Config{MaxRecord: 64 << 10})
			typ := ledgers(func(t *entity.Type[ledger]) {
				t.Durability = d
				t.Handlers["blob"] = entity.On(func(_ *entity.Context, l *ledger, m blob) error { return nil })
				t.Handlers["carry"] = entity.On(func(c *entity.Context, l *ledger, m carry) error {
					l.accept("carry")
					c.SendOnce("ledgers", "y", blob{strings.Repeat("x", m.N)})
					return nil
				})
			})
			w := newWorld(t, 1, store, typ, pod.Config{MaxState: 64 << 10})
			_, err := w.ask("x", add{"1"})
			w.must(err)
			p := w.send("x", carry{65 << 10})
			w.exec.RunFor(5 * time.Second)
			q := w.send("x", add{"2"})
			w.exec.RunFor(time.Minute)
			require.True(t, p.Done(), "no answer in a minute (G7)")
			require.True(t, q.Done())
			w.kill()
		})
	}
}

// TestQuarantinedSenderLeavesDeadLetters: what a removed entity has not
// delivered is not silently gone.
func TestQuarantinedSenderLeavesDeadLetters(t *testing.T) {
	for _, m := range []*entity.Message{entity.Delete(entity.Condition{}), entity.Discard()} {
		mem := persisttest.NewMemory()
		store := persisttest.NewFaultStore(mem)
		b := newBank(t, 1, store, accounts(nil), pod.Config{IdleAfter: time.Second})
		_, err := b.ask("ann", open{100})
		b.must(err)
		store.OnLoads(func(k persist.Key) bool { return k.Name == "bob" }, persist.ErrUnavailable)
		_, err = b.ask("ann", transfer{"t", "bob", 40})
		b.must(err)
		b.kill()
		mem.Damage(persist.Key{Pod: "accounts", Name: "ann"})
		b = newBank(t, 2, mem, accounts(nil), pod.Config{})
		letters := b.deadLetters()
		b.exec.RunFor(time.Second)
		_, err = b.ask("ann", m)
		b.must(err)
		b.exec.RunFor(time.Minute)
		if undelivered(letters) != 1 {
			t.Errorf("%s: the message vanished without a dead letter", m.Name())
		}
		b.close()
	}
}

// rowsWithRecord is a store that has the rows of an entity in one file with the
// record.
type rowsWithRecord struct{ *persisttest.Memory }

func (m rowsWithRecord) RowsOf(ctx context.Context, key persist.Key) ([]persist.Row, error) {
	if _, err := m.Load(ctx, key); errors.Is(err, snapshot.ErrCorrupt) {
		return nil, err
	}
	return m.Memory.RowsOf(ctx, key)
}

// TestWhatIsDamagedWithItsRowsCanBeRemoved: otherwise it would be quarantined for
// ever.
func TestWhatIsDamagedWithItsRowsCanBeRemoved(t *testing.T) {
	for _, m := range []*entity.Message{entity.Delete(entity.Condition{}), entity.Discard()} {
		store := rowsWithRecord{persisttest.NewMemory()}
		b := newBank(t, 1, store, accounts(nil), pod.Config{})
		_, err := b.ask("ann", open{100})
		b.must(err)
		b.close()
		store.Damage(persist.Key{Pod: "accounts", Name: "ann"})
		b = newBank(t, 2, store, accounts(nil), pod.Config{})
		_, err = b.ask("ann", m)
		require.NoError(t, err, m.Name())
		_, err = b.ask("ann", open{1})
		require.NoError(t, err, "it comes anew")
		b.close()
	}
}

// TestDeletionDoesNotWaitForMessagesToItself: a deletion keeps those
// from being handled, so it must not wait for them.
func TestDeletionDoesNotWaitForMessagesToItself(t *testing.T) {
	b := newBank(t, 1, persisttest.NewMemory(), accounts(nil), pod.Config{})
	defer b.close()
	_, err := b.ask("ann", open{100})
	b.must(err)
	p := b.send("ann", transfer{"t", "ann", 1})
	q := b.send("ann", entity.Delete(entity.Condition{}))
	_, err = b.wait(p)
	b.must(err)
	_, err = b.wait(q)
	require.NoError(t, err)
}

// TestDeletionsWaitOnce: while a receiver takes nothing, deletions do not hold the
// mailbox one after the other.
func TestDeletionsWaitOnce(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	b := newBank(t, 1, store, accounts(nil), pod.Config{})
	_, err := b.ask("ann", open{100})
	b.must(err)
	store.OnLoads(func(k persist.Key) bool { return k.Name == "bob" }, persist.ErrUnavailable)
	_, err = b.ask("ann", transfer{"t", "bob", 1})
	b.must(err)
	for range 5 {
		b.send("ann", entity.Delete(entity.Condition{}))
	}
	begin := b.sys.Now()
	_, _ = b.ask("ann", open{1})
	require.Less(t, b.sys.Now().Sub(begin), 6*time.Second)
	b.kill()
}

// TestSendOnceOverStopsAndFaults: transfers while actors are stopped and
// poisoned, loads and commits fail, and answers take longer than a minute.
func TestSendOnceOverStopsAndFaults(t *testing.T) {
	for name, durability := range map[string]entity.Durability{"sync": entity.Sync(), "async": entity.Async(5 * time.Millisecond)} {
		t.Run(name, func(t *testing.T) {
			forSeeds(t, 100, func(t *testing.T, seed uint64) {
				rng := rand.New(rand.NewPCG(seed, 18))
				store := persisttest.NewFaultStore(persisttest.NewMemory())
				b := newBank(t, seed, store, accounts(func(t *entity.Type[account]) { t.Durability = durability }), pod.Config{IdleAfter: 30 * time.Millisecond, MaxActive: 3})
				names := []string{"ann", "bob", "cis", "dan"}
				for _, n := range names {
					_, err := b.ask(n, open{100})
					b.must(err)
				}
				allow := func() {}
				for i := range 50 {
					from, to := names[rng.IntN(4)], names[rng.IntN(4)]
					b.send(from, transfer{ID: fmt.Sprint(from, i), To: to, Amount: 1 + rng.IntN(20)})
					switch rng.IntN(12) {
					case 0:
						failOnce(store, rng)
					case 1:
						if r, err := b.sys.Lookup("/user/pods/accounts/" + to); err == nil {
							r.Stop()
						}
					case 2:
						if r, err := b.sys.Lookup("/user/pods/accounts/" + to); err == nil {
							_ = r.Tell(actor.PoisonPill{})
						}
					case 3:
						allow()
						allow = store.OnLoads(func(k persist.Key) bool { return k.Name == to }, persist.ErrUnavailable)
					case 4:
						allow()
						allow = func() {}
					case 5:
						b.exec.RunFor(time.Duration(rng.IntN(90)) * time.Second)
					case 6, 7, 8:
						b.exec.RunFor(time.Duration(rng.IntN(60)) * time.Millisecond)
					}
				}
				allow()
				b.exec.RunFor(5 * time.Minute)
				for _, n := range names {
					_, _ = b.ask(n, open{0})
				}
				b.settle()
				if !durability.IsAsync() {
					b.checkBooks(names)
				} else {
					sum := 0
					for _, n := range names {
						sum += b.get(n).Balance
					}
					if sum != 400 {
						t.Fatalf("seed %d: the sum is %d", seed, sum)
					}
				}
				b.close()
			})
		})
	}
}

// undelivered counts the dead letters of SendOnce.
func undelivered(zs *[]actor.ZombieMsg) (n int) {
	for _, z := range *zs {
		if _, ok := z.Message.Payload.(entity.Undelivered); ok {
			n++
		}
	}
	return n
}
