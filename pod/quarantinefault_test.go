package pod_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
	"github.com/twinsrv/twinsrv/pod"
)

// TestReadingDelistsNobodyWhoIsBlocked: a good record takes an entity off the
// list only if its record put it there.
func TestReadingDelistsNobodyWhoIsBlocked(t *testing.T) {
	store := persisttest.NewMemory()
	b := newBank(t, 1, store, accounts(nil), pod.Config{})
	for _, n := range []string{"ann", "bob"} {
		_, err := b.ask(n, open{100})
		b.must(err)
	}
	_, err := b.ask("ann", transfer{"t", "bob", 40})
	b.must(err)
	b.exec.RunFor(time.Second)
	b.kill()
	store.DamageRow(persist.Row{Kind: "inbox", Key: persist.Key{Pod: "accounts", Name: "bob"}, ID: "accounts/ann"})
	b = newBank(t, 2, store, accounts(nil), pod.Config{})
	defer b.close()
	_, err = b.ask("bob", open{1})
	require.ErrorIs(t, err, entity.ErrQuarantined)
	require.Len(t, b.pods.Quarantined(), 1)
	_, _ = b.a.Get(context.Background(), "bob")
	_, err = b.ask("bob", open{1})
	require.ErrorIs(t, err, entity.ErrQuarantined)
	_, _ = b.a.Get(context.Background(), "bob")
	require.Len(t, b.pods.Quarantined(), 1)
}
