package persisttest_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"go.uber.org/goleak"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/persisttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const maxRecord = 16 << 20

func memoryFixture(*testing.T) persisttest.Fixture {
	m := persisttest.NewMemory()
	return persisttest.Fixture{
		Store:  m,
		Reopen: func(*testing.T) persist.PersistenceService { m = m.Again(); return m },
		Damage: func(_ *testing.T, k persist.Key) { m.Damage(k) },

		DamageRow:    func(_ *testing.T, r persist.Row) { m.DamageRow(r) },
		DamageChange: func(_ *testing.T, c persist.Change) { m.DamageChange(c) },
		Restore:      restore,
		MaxRecord:    maxRecord,
	}
}

func restore(t *testing.T, backup io.Reader) persist.PersistenceService {
	m, err := persisttest.Restore(ctx, backup)
	require.NoError(t, err)
	return m
}

func TestMemory(t *testing.T) { persisttest.Run(t, memoryFixture) }

func TestCrashStoreConforms(t *testing.T) {
	persisttest.Run(t, func(*testing.T) persisttest.Fixture {
		c := persisttest.NewCrashStore()
		return persisttest.Fixture{
			Store:  c,
			Reopen: func(*testing.T) persist.PersistenceService { c = c.Crash(1); return c },
			Damage: func(_ *testing.T, k persist.Key) { c.Damage(k) },

			DamageRow:    func(_ *testing.T, r persist.Row) { c.DamageRow(r) },
			DamageChange: func(_ *testing.T, r persist.Change) { c.DamageChange(r) },
			Restore:      restore,
			MaxRecord:    maxRecord,
		}
	})
}

func TestFaultStoreConforms(t *testing.T) {
	persisttest.Run(t, func(t *testing.T) persisttest.Fixture {
		f := memoryFixture(t)
		again := f.Reopen
		f.Store = persisttest.NewFaultStore(f.Store)
		f.Reopen = func(t *testing.T) persist.PersistenceService { return persisttest.NewFaultStore(again(t)) }
		return f
	})
}
