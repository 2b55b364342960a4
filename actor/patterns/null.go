package patterns

import "github.com/twinsrv/twinsrv/actor"

// Null returns the props of an actor that takes every message and does nothing:
// for what nobody wants, and for tests. An ask ends with actor.ErrNoReply.
func Null() actor.Props {
	return actor.PropsFunc(func(*actor.Context, any) error { return nil })
}
