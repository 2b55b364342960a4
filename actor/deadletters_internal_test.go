package actor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who is told that an ask failed, because it led nowhere, finds the letter there,
// and no subscriber can answer the ask in the meantime.
func TestADeadLetterIsThereBeforeItsAskEnds(t *testing.T) {
	s := NewSystem("test", Config{})
	defer stop(t, s)
	r, err := s.Spawn("", PropsFunc(func(*Context, any) error { return nil }))
	require.NoError(t, err)
	r.Stop()
	require.NoError(t, s.AwaitStop(context.Background(), r))
	var letters []ZombieMsg
	s.DeadLetters().Subscribe(func(z ZombieMsg) {
		if z.To == askPath {
			return // the answer below
		}
		require.False(t, z.Message.Reply.Complete("answered"))
		require.Nil(t, z.Message.Reply.err, "the asker knows nothing yet")
		letters = append(letters, z)
	})
	for n := 1; n <= 100; n++ {
		_, err = r.Ask(context.Background(), n)
		require.ErrorIs(t, err, ErrStopped)
		require.Len(t, letters, n)
	}
}
