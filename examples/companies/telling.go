package main

import (
	"fmt"
	"sync"

	"github.com/twinsrv/twinsrv/actor"
)

// telling is a headline whose companies are being told. It is answered when all
// have answered: with the first error, if there is one.
type telling struct {
	of     int
	answer *actor.Promise

	mu    sync.Mutex
	left  int
	first error
}

func (t *telling) answered(symbol string, err error) {
	t.mu.Lock()
	if err != nil && t.first == nil {
		t.first = fmt.Errorf("tell %s: %w", symbol, err)
	}
	t.left--
	done, first := t.left == 0, t.first
	t.mu.Unlock()
	switch {
	case !done:
	case first != nil:
		t.answer.Fail(first)
	default:
		t.answer.Complete(delivered{companies: t.of})
	}
}
