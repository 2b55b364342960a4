package pod_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// TestCloseWithFullOutboxes: entities that all owe each other messages, and take
// longer to be read than to be sent away, do not wake each other for ever. What
// is not delivered when the pods are closed is delivered by the next ones.
func TestCloseWithFullOutboxes(t *testing.T) {
	forSeeds(t, 50, func(t *testing.T, seed uint64) {
		memory := persisttest.NewCrashStore()
		store := &slowReads{CrashStore: memory}
		b := newBank(t, seed, store, accounts(nil), pod.Config{})
		store.pause = func(ctx context.Context) error { return b.sys.Sleep(ctx, 5*time.Millisecond) }
		names := ids("n", 12)
		var sent []*actor.Promise
		for _, from := range names {
			_, err := b.ask(from, open{100})
			b.must(err)
			for _, to := range names {
				sent = append(sent, b.send(from, transfer{ID: fmt.Sprintf("%s-%s", from, to), To: to, Amount: 1}))
			}
		}
		_, err := b.wait(sent[len(sent)/2])
		b.must(err)
		b.close()

		b = newBank(t, seed, memory, accounts(nil), pod.Config{})
		defer b.close()
		b.settle()
		for i, n := range names {
			got := b.get(n)
			if got.Balance != 100 || len(got.Got) != len(names) {
				t.Fatalf("seed %d: account %d has %+v", seed, i, got)
			}
		}
	})
}

// TestCloseDeliversWhatEndsWithIt: what a volatile entity has sent once does not
// wait for a next start that knows nothing of it.
func TestCloseDeliversWhatEndsWithIt(t *testing.T) {
	forSeeds(t, 50, func(t *testing.T, seed uint64) {
		memory := persisttest.NewCrashStore()
		b := newBank(t, seed, &slowReads{CrashStore: memory}, accounts(nil), pod.Config{})
		tills, err := pod.Start(b.pods, accounts(func(a *entity.Type[account]) {
			a.Name, a.Durability = "tills", entity.Volatile()
		}))
		b.must(err)
		_, err = b.wait(b.sendTo(tills.Ref("t"), open{100}))
		b.must(err)
		for i := range 5 {
			b.sendTo(tills.Ref("t"), transfer{ID: fmt.Sprint(i), To: "ann", Amount: 10})
		}
		b.close()

		b = newBank(t, seed, memory, accounts(nil), pod.Config{})
		defer b.close()
		if got := b.get("ann"); got.Balance != 50 {
			t.Fatalf("seed %d: it has got %+v", seed, got)
		}
	})
}
