package actor

import (
	"context"
	"fmt"
	"reflect"
	"time"
)

// Ask sends a message to any target and waits for an answer of type T. An
// answer of another type is an error that names both types. Otherwise it is
// as Ref.Ask.
func Ask[T any](ctx context.Context, t Target, msg any) (T, error) {
	var none T
	v, err := askTarget(ctx, t, msg)
	if err != nil {
		return none, err
	}
	if answer, ok := v.(T); ok {
		return answer, nil
	}
	if v == nil && reflect.TypeFor[T]().Kind() == reflect.Interface {
		return none, nil
	}
	return none, fmt.Errorf("ask %v with %T: the answer is a %T, not a %v", t, msg, v, reflect.TypeFor[T]())
}

func askTarget(ctx context.Context, t Target, msg any) (any, error) {
	if r, ok := t.(*Ref); ok {
		return r.Ask(ctx, msg)
	}
	if err := ctx.Err(); err != nil {
		return nil, notSent(fmt.Sprint(t), err)
	}
	s := t.System()
	p := s.NewPromise()
	if err := t.Post(Message{Payload: msg, Reply: p}); err != nil {
		return nil, err
	}
	v, err := p.await(ctx, s.askLimit(ctx))
	if w, ok := asWait(err); ok {
		return nil, w.failed(fmt.Sprintf("ask %v", t))
	}
	return v, err
}

// askLimit is the time that an ask may take beside what ctx says.
func (s *System) askLimit(ctx context.Context) time.Duration {
	if _, ok := ctx.Deadline(); ok {
		return 0
	}
	return s.askTimeout
}
