package actor

import (
	"context"
	"runtime"
	"testing"
	"time"

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

// A subscriber that blocks keeps no asker beyond the deadline, and one that ends
// its goroutine none at all.
func TestASubscriberCannotKeepAnAsker(t *testing.T) {
	s := NewSystem("test", Config{})
	held, over := make(chan struct{}), make(chan struct{})
	s.DeadLetters().Subscribe(func(z ZombieMsg) {
		switch z.Message.Payload {
		case "exit":
			runtime.Goexit()
		case "block":
			close(held)
			<-over
		}
	})
	p := s.NewPromise()
	go s.deadLetter("/nowhere", Message{Payload: "exit", Reply: p}, ErrNotFound)
	_, err := p.Wait(context.Background())
	require.ErrorIs(t, err, ErrNotFound)

	p = s.NewPromise()
	go s.deadLetter("/nowhere", Message{Payload: "block", Reply: p}, ErrNotFound)
	<-held
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = p.Wait(ctx)
	require.ErrorIs(t, err, ErrTimeout)
	close(over)
	stop(t, s)
}
