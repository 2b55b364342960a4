package pod_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// account sends money and remembers what it sent and got, in order.
type account struct {
	Balance int      `json:"balance"`
	Sent    []string `json:"sent"`
	Got     []string `json:"got"`
}

type (
	open     struct{ Amount int }
	transfer struct {
		ID, To string
		Amount int
	}
	deposit struct {
		ID, From string
		Amount   int
	}
	rebuff struct{ ID, To string } // sends what the receiver rejects
	no     struct{ ID string }
	forget struct{ ID, To string } // sends a message that creates nobody
	query  struct{}
	volley struct {
		ID, To string
		N      int
	}
)

func accounts(edit func(*entity.Type[account])) entity.Type[account] {
	t := entity.Type[account]{
		Name: "accounts",
		Handlers: entity.Handlers[account]{
			"open": entity.On(func(_ *entity.Context, a *account, m open) error { a.Balance += m.Amount; return nil }),
			"transfer": entity.On(func(c *entity.Context, a *account, m transfer) error {
				if a.Balance < m.Amount {
					return entity.Rejectf("it has %d", a.Balance)
				}
				a.Balance -= m.Amount
				a.Sent = append(a.Sent, m.ID)
				c.SendOnce("accounts", m.To, deposit{m.ID, c.Name(), m.Amount})
				return nil
			}),
			"deposit": entity.On(func(_ *entity.Context, a *account, m deposit) error {
				a.Balance += m.Amount
				a.Got = append(a.Got, m.From+":"+m.ID)
				return nil
			}),
			"volley": entity.On(func(c *entity.Context, a *account, m volley) error {
				for i := range m.N {
					id := fmt.Sprint(m.ID, ".", i)
					a.Sent = append(a.Sent, id)
					c.SendOnce("accounts", m.To, deposit{id, c.Name(), 0})
				}
				return nil
			}),
			"rebuff": entity.On(func(c *entity.Context, a *account, m rebuff) error {
				c.SendOnce("accounts", m.To, no{m.ID})
				return nil
			}),
			"no": entity.On(func(_ *entity.Context, a *account, m no) error {
				a.Balance = 1 << 30
				return entity.Rejectf("no %s", m.ID)
			}),
			"forget": entity.On(func(c *entity.Context, a *account, m forget) error {
				c.SendOnce("accounts", m.To, query{})
				return nil
			}),
			"query": entity.Query(func(_ *entity.Context, a *account, _ query) (int, error) { return a.Balance, nil }),
		},
	}
	if edit != nil {
		edit(&t)
	}
	return t
}

// bank is a world of accounts.
type bank struct {
	*world
	a *pod.Handle[account]
}

func newBank(t testing.TB, seed uint64, store persist.PersistenceService, typ entity.Type[account], cfg pod.Config) *bank {
	b := &bank{world: emptyWorld(t, seed, store, cfg)}
	var err error
	b.a, err = pod.Start(b.pods, typ)
	b.must(err)
	return b
}

func (b *bank) send(name string, msg any) *actor.Promise { return b.sendTo(b.a.Ref(name), msg) }

func (b *bank) ask(name string, msg any) (any, error) { return b.wait(b.send(name, msg)) }

func (b *bank) get(name string) account {
	b.t.Helper()
	v, err := b.a.Get(context.Background(), name)
	b.must(err)
	return v.State
}

// rows returns the rows of a kind that the store has.
func (b *bank) rows(kind string) []persist.Row {
	b.t.Helper()
	rows, err := b.store.Rows(context.Background(), kind, nil, 100_000)
	b.must(err)
	return rows
}

// settle lets everything be delivered.
func (b *bank) settle() {
	b.t.Helper()
	for range 100 {
		if len(b.rows("outbox")) == 0 {
			return
		}
		b.exec.RunFor(time.Second)
	}
	b.t.Fatalf("seed %d: %d messages are still to be delivered", b.seed, len(b.rows("outbox")))
}

// TestSendOnceOverCrashes: transfers among a few accounts that come and go, a
// power cut at a random step, several times over. In the end all that was
// acknowledged has had its effect once, in the order of each sender, and the sum
// is what it was.
func TestSendOnceOverCrashes(t *testing.T) {
	for name, durability := range map[string]entity.Durability{"sync": entity.Sync(), "async": entity.Async(5 * time.Millisecond)} {
		t.Run(name, func(t *testing.T) {
			forSeeds(t, 400, func(t *testing.T, seed uint64) {
				typ := accounts(func(t *entity.Type[account]) { t.Durability = durability })
				sendOnceOverCrashes(t, seed, typ)
			})
		})
	}
}

func sendOnceOverCrashes(t *testing.T, seed uint64, typ entity.Type[account]) {
	rng := rand.New(rand.NewPCG(seed, 7))
	store := persisttest.NewCrashStore()
	names := []string{"ann", "bob", "cis", "dan"}
	cfg := pod.Config{IdleAfter: 20 * time.Millisecond, MaxActive: 2}
	b := newBank(t, seed, store, typ, cfg)
	for _, n := range names {
		_, err := b.ask(n, open{100})
		b.must(err)
	}
	acked := []transfer{}
	for round := range 4 {
		type sent struct {
			transfer
			reply *actor.Promise
		}
		var under []sent
		for i := range 25 {
			from, to := names[rng.IntN(4)], names[rng.IntN(4)]
			m := transfer{ID: fmt.Sprintf("%s%d.%d", from, round, i), To: to, Amount: 1 + rng.IntN(20)}
			under = append(under, sent{m, b.send(from, m)})
			if rng.IntN(3) == 0 {
				b.exec.RunFor(time.Duration(rng.IntN(40)) * time.Millisecond)
			}
		}
		for range rng.IntN(300) {
			b.exec.Step()
		}
		for _, s := range under {
			if s.reply.Done() {
				if _, err := b.wait(s.reply); err == nil {
					acked = append(acked, s.transfer)
				}
			}
		}
		store = store.Crash(rng.Uint64())
		b.kill()
		b = newBank(t, seed*8+uint64(round), store, typ, cfg)
	}
	defer b.close()
	b.settle()
	b.checkBooks(names)
	if typ.Durability.IsAsync() {
		return // what was acknowledged may be lost, but nothing by halves
	}
	for _, m := range acked {
		got := b.get(m.To).Got
		require.True(t, slices.ContainsFunc(got, func(s string) bool { return s[len("ann:"):] == m.ID }), "seed %d: %s is missing in %v", seed, m.ID, got)
	}
}

// checkBooks requires that what was sent was got, once and in order, and that
// the sum is right.
func (b *bank) checkBooks(names []string) {
	b.t.Helper()
	sum := 0
	got := map[string][]string{}
	for _, n := range names {
		a := b.get(n)
		sum += a.Balance
		for _, from := range names {
			var line []string
			for _, g := range a.Got {
				if g[:4] == from+":" {
					line = append(line, g[4:])
				}
			}
			got[from] = append(got[from], line...)
			require.True(b.t, inOrder(line, b.get(from).Sent), "seed %d: %s got of %s %v, which sent %v", b.seed, n, from, line, b.get(from).Sent)
		}
	}
	require.Equal(b.t, 100*len(names), sum, "seed %d", b.seed)
	for _, n := range names {
		sent := slices.Clone(b.get(n).Sent)
		slices.Sort(sent)
		slices.Sort(got[n])
		require.Equal(b.t, sent, got[n], "seed %d: all that %s sent has arrived once", b.seed, n)
	}
}

// inOrder reports whether part is a subsequence of whole.
func inOrder(part, whole []string) bool {
	for _, s := range whole {
		if len(part) > 0 && part[0] == s {
			part = part[1:]
		}
	}
	return len(part) == 0
}

// TestSendOnceOverFailingCommits: commits fail, also with an unknown outcome,
// and the store has to be reopened.
func TestSendOnceOverFailingCommits(t *testing.T) {
	for name, durability := range map[string]entity.Durability{"sync": entity.Sync(), "async": entity.Async(5 * time.Millisecond)} {
		t.Run(name, func(t *testing.T) {
			forSeeds(t, 300, func(t *testing.T, seed uint64) {
				rng := rand.New(rand.NewPCG(seed, 8))
				store := persisttest.NewFaultStore(persisttest.NewMemory())
				b := newBank(t, seed, store, accounts(func(t *entity.Type[account]) { t.Durability = durability }), pod.Config{IdleAfter: 30 * time.Millisecond})
				names := []string{"ann", "bob", "cis", "dan"}
				for _, n := range names {
					_, err := b.ask(n, open{100})
					b.must(err)
				}
				for i := range 40 {
					from, to := names[rng.IntN(4)], names[rng.IntN(4)]
					b.send(from, transfer{ID: fmt.Sprint(from, i), To: to, Amount: 1 + rng.IntN(20)})
					if rng.IntN(6) == 0 {
						failOnce(store, rng)
					}
					if rng.IntN(3) == 0 {
						b.exec.RunFor(time.Duration(rng.IntN(60)) * time.Millisecond)
					}
				}
				b.exec.RunFor(time.Minute)
				b.settle()
				b.checkBooks(names)
				b.close()
			})
		})
	}
}

// failOnce spoils one of the next commits.
func failOnce(store *persisttest.FaultStore, rng *rand.Rand) {
	faults := []persisttest.Fault{persisttest.FailBefore, persisttest.UnknownApplied, persisttest.UnknownLost, persisttest.ConflictUnit}
	store.OnCommit(store.Commits()+1+rng.IntN(4), faults[rng.IntN(len(faults))])
}

// deadLetters collects what becomes of refused messages.
func (b *bank) deadLetters() *[]actor.ZombieMsg {
	var zs []actor.ZombieMsg
	b.sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) { zs = append(zs, z) })
	return &zs
}

// TestSendOnceRefused: what a receiver refuses is a dead letter, changes nothing
// and does not stop what comes behind it.
func TestSendOnceRefused(t *testing.T) {
	forSeeds(t, 20, func(t *testing.T, seed uint64) {
		b := newBank(t, seed, persisttest.NewMemory(), accounts(nil), pod.Config{})
		defer b.close()
		letters := b.deadLetters()
		for _, n := range []string{"ann", "bob"} {
			_, err := b.ask(n, open{100})
			b.must(err)
		}
		for i, m := range []any{rebuff{"x", "bob"}, forget{"y", "nobody"}, transfer{"z", "bob", 30}} {
			_, err := b.ask("ann", m)
			b.must(err)
			_ = i
		}
		b.settle()
		b.exec.RunFor(time.Second)
		require.Equal(t, 130, b.get("bob").Balance)
		require.Equal(t, []string{"ann:z"}, b.get("bob").Got)
		_, err := b.a.Get(t.Context(), "nobody")
		require.ErrorIs(t, err, entity.ErrNotFound)
		var to []string
		for _, z := range *letters {
			if u, ok := z.Message.Payload.(entity.Undelivered); ok {
				to = append(to, z.To+" "+u.Type)
			}
		}
		slices.Sort(to)
		require.Equal(t, []string{"accounts/bob no", "accounts/nobody query"}, to)
	})
}

// TestSendOnceWaitsForTheReceiver: a receiver that takes nothing at the moment
// gets everything later, in order; until then its sender cannot be deleted, only
// discarded.
func TestSendOnceWaitsForTheReceiver(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	b := newBank(t, 1, store, accounts(nil), pod.Config{IdleAfter: time.Second})
	defer b.close()
	letters := b.deadLetters()
	for _, n := range []string{"ann", "bob"} {
		_, err := b.ask(n, open{100})
		b.must(err)
	}
	b.exec.RunFor(5 * time.Second) // bob leaves memory
	allow := store.OnLoads(func(k persist.Key) bool { return k.Name == "bob" }, persist.ErrUnavailable)
	_, err := b.ask("ann", volley{"a", "bob", 200})
	b.must(err)
	b.exec.RunFor(time.Minute)
	require.Len(t, b.rows("outbox"), 200)

	_, err = b.ask("ann", entity.Delete(entity.Condition{}))
	require.ErrorIs(t, err, entity.ErrBusy)
	require.ErrorContains(t, err, "200 messages")

	allow()
	b.settle()
	require.Equal(t, b.get("ann").Sent, func() (ids []string) {
		for _, g := range b.get("bob").Got {
			ids = append(ids, g[len("ann:"):])
		}
		return ids
	}())
	b.exec.RunFor(time.Second)
	require.Empty(t, b.rows("outbox"))

	deny := store.OnLoads(func(k persist.Key) bool { return k.Name == "cis" }, persist.ErrUnavailable)
	_, err = b.ask("ann", volley{"b", "cis", 3})
	b.must(err)
	b.exec.RunFor(10 * time.Second)
	_, err = b.ask("ann", entity.Discard())
	b.must(err)
	b.exec.RunFor(10 * time.Second) // what was under way has been refused
	deny()
	b.exec.RunFor(time.Minute)
	require.Empty(t, b.rows("outbox"))
	_, err = b.a.Get(t.Context(), "cis")
	require.ErrorIs(t, err, entity.ErrNotFound)
	n := 0
	for _, z := range *letters {
		if _, ok := z.Message.Payload.(entity.Undelivered); ok {
			n++
		}
	}
	require.Equal(t, 3, n)
}

// TestSendOnceAfterRestart: what was not delivered when the pods closed is
// delivered by those that open the store next, without anybody touching the
// sender.
func TestSendOnceAfterRestart(t *testing.T) {
	forSeeds(t, 30, func(t *testing.T, seed uint64) {
		memory := persisttest.NewMemory()
		store := persisttest.NewFaultStore(memory)
		b := newBank(t, seed, store, accounts(nil), pod.Config{IdleAfter: time.Second})
		_, err := b.ask("ann", open{100})
		b.must(err)
		store.OnLoads(func(k persist.Key) bool { return k.Name == "bob" }, persist.ErrUnavailable)
		_, err = b.ask("ann", transfer{"t", "bob", 40})
		b.must(err)
		b.kill()

		b = newBank(t, seed, memory, accounts(nil), pod.Config{})
		defer b.close()
		b.exec.RunFor(5 * time.Second)
		require.Empty(t, b.rows("outbox"))
		require.Equal(t, 40, b.get("bob").Balance)
	})
}

// TestSendOnceToANewLife: a receiver that was deleted and made again takes what
// comes then.
func TestSendOnceToANewLife(t *testing.T) {
	b := newBank(t, 3, persisttest.NewMemory(), accounts(nil), pod.Config{})
	defer b.close()
	_, err := b.ask("ann", open{100})
	b.must(err)
	for i := range 3 {
		_, err = b.ask("ann", transfer{fmt.Sprint(i), "bob", 10})
		b.must(err)
		b.settle()
		require.Equal(t, 10, b.get("bob").Balance)
		_, err = b.ask("bob", entity.Delete(entity.Condition{}))
		b.must(err)
	}
	// And a sender's new life is not taken for its old one.
	_, err = b.ask("bob", open{0})
	b.must(err)
	for range 3 {
		_, err = b.ask("ann", entity.Delete(entity.Condition{}))
		b.must(err)
		_, err = b.ask("ann", open{100})
		b.must(err)
		_, err = b.ask("ann", transfer{"again", "bob", 1})
		b.must(err)
		b.settle()
	}
	require.Equal(t, 3, b.get("bob").Balance)
}

// TestOutboxIsBounded: a turn that would hold too many undelivered messages
// fails and changes nothing.
func TestOutboxIsBounded(t *testing.T) {
	store := persisttest.NewFaultStore(persisttest.NewMemory())
	b := newBank(t, 4, store, accounts(nil), pod.Config{})
	_, err := b.ask("ann", open{100})
	b.must(err)
	store.OnLoads(func(k persist.Key) bool { return k.Name == "bob" }, persist.ErrUnavailable)
	_, err = b.ask("ann", volley{"a", "bob", 9_990})
	b.must(err)
	before := b.get("ann")
	_, err = b.ask("ann", volley{"b", "bob", 20})
	require.ErrorIs(t, err, entity.ErrBusy)
	require.Equal(t, before, b.get("ann"))
	b.kill()
}
