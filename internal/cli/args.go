package cli

import (
	"context"
	"time"

	"github.com/twinsrv/twinsrv/client"
)

// entityArgs name an entity.
type entityArgs struct {
	Pod  string `arg:"" complete:"pods" help:"The pod's name."`
	Name string `arg:"" complete:"names" help:"The entity's name, as it is."`
}

func (e entityArgs) String() string { return Printable(e.Pod + "/" + e.Name) }

// errEmptyName refuses an empty name where none at all means something else: it
// may come from a variable that is not set.
func errEmptyName() error {
	return Usagef("a name is empty; was it to come from a variable that is not set?")
}

// conditionFlags say when a change is to happen.
type conditionFlags struct {
	IfMatch   string `placeholder:"LIFE-REVISION" help:"Do it only if the entity is at this revision, such as 2-5; * is any, if it exists."`
	Condition string `placeholder:"CEL" help:"Do it only if an expression holds for the entity, such as 'state.celsius > 30.0'."`
}

// on adds the conditions to an entity's address.
func (f conditionFlags) on(e client.Entity) (client.Entity, error) {
	switch f.IfMatch {
	case "":
	case "*":
		e = e.IfExists()
	default:
		tag, err := client.ParseETag(f.IfMatch)
		if err != nil {
			return e, Usagef("--if-match wants a revision such as 2-5, life and revision, or *: %w", err)
		}
		e = e.IfMatch(tag)
	}
	if f.Condition != "" {
		e = e.Where(f.Condition)
	}
	return e, nil
}

// onEntity does something with an entity of the server.
func (f *ServerFlags) onEntity(ctx context.Context, args entityArgs, what func(ctx context.Context, e client.Entity) error) error {
	return f.do(ctx, func(ctx context.Context, s *Session) error { return what(ctx, s.entity(args.Pod, args.Name)) })
}

// moment reads a time: one of RFC 3339, one of here, or how long ago it was.
func moment(text string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return time.Now().Add(-ago), nil
	}
	return time.Time{}, Usagef("%s is no time: give one such as 2026-01-31T12:00:00Z, '2026-01-31 13:00' of here, or 90m for so long ago", Printable(text))
}

// timeText is a time for people.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}
