package actor

import (
	"context"
	"log/slog"
)

// pathHandler adds an actor's path to what is logged, and makes it only then.
type pathHandler struct {
	next slog.Handler
	r    *Ref
}

func (h pathHandler) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

func (h pathHandler) Handle(ctx context.Context, rec slog.Record) error {
	rec = rec.Clone()
	rec.AddAttrs(h.attr())
	return h.next.Handle(ctx, rec)
}

// WithAttrs and WithGroup add the path at once: later it would be in the group.
func (h pathHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.next.WithAttrs([]slog.Attr{h.attr()}).WithAttrs(attrs)
}

func (h pathHandler) WithGroup(name string) slog.Handler {
	return h.next.WithAttrs([]slog.Attr{h.attr()}).WithGroup(name)
}

func (h pathHandler) attr() slog.Attr { return slog.String("actor", h.r.Path()) }
