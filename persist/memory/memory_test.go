package memory_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/memory"
	"github.com/twinsrv/twinsrv/persist/persisttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

func TestConforms(t *testing.T) {
	persisttest.Run(t, func(t *testing.T) persisttest.Fixture {
		s := memory.Open(memory.Config{MaxRecord: 2 << 20})
		return persisttest.Fixture{
			Store: s,
			Reopen: func(*testing.T) persist.PersistenceService {
				s = s.Fork()
				return s
			},
			MaxRecord: 2 << 20,
		}
	})
}
