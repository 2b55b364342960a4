package patterns

import (
	"fmt"
	"log/slog"

	"github.com/twinsrv/twinsrv/actor"
)

// Log returns the props of an actor that logs each message at a level, with its
// type and its sender, to the system's logger. An ask is answered with the
// message itself; so a Log between two stages of a Pipeline shows what passes.
func Log(level slog.Level) actor.Props {
	return actor.PropsFunc(func(ctx *actor.Context, msg any) error {
		if log := ctx.Logger(); log.Enabled(ctx.Context(), level) {
			sender := ""
			if s := ctx.Sender(); s != nil {
				sender = s.Path()
			}
			log.Log(ctx.Context(), level, "message", "type", fmt.Sprintf("%T", msg), "message", msg, "sender", sender)
		}
		if ctx.Message().Reply != nil {
			ctx.Respond(msg)
		}
		return nil
	})
}
