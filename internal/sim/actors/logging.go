package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/twinsrv/twinsrv/actor"
)

// book is the system's logger. What is logged is compared with what has to be:
// whoever does what must be logged says so before, and the lines that the
// runtime decides on are judged by what is known of their actors.
type book struct {
	w     *world
	group string
	attrs string
}

// Enabled says that all is logged.
func (b book) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs adds attributes in the present group.
func (b book) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		b.attrs += b.entry(a)
	}
	return b
}

// WithGroup has what is added from now on be in a group.
func (b book) WithGroup(name string) slog.Handler {
	b.group += name + "."
	return b
}

// entry leaves out what has no text of its own, and would show addresses.
func (b book) entry(a slog.Attr) string {
	switch v := a.Value.Any().(type) {
	case error:
		return fmt.Sprintf(" %s%s=%v", b.group, a.Key, v)
	case string, int64:
		return fmt.Sprintf(" %s%s=%v", b.group, a.Key, v)
	}
	return ""
}

// Handle makes a line.
func (b book) Handle(_ context.Context, rec slog.Record) error {
	line := rec.Level.String() + " " + rec.Message + b.attrs
	rec.Attrs(func(a slog.Attr) bool {
		line += b.entry(a)
		return true
	})
	b.w.logged(line)
	return nil
}

// logs says that the next line of the log has to be this one.
func (w *world) logs(format string, args ...any) {
	w.logDue()
	w.due = fmt.Sprintf(format, args...)
}

// logDue looks whether what had to be logged was.
func (w *world) logDue() {
	if w.due != "" {
		w.wrong("%q was not logged", w.due)
	}
	w.due = ""
}

const (
	logFailed   = "WARN actor failed "
	logStrategy = "ERROR the strategy panicked: stopping the child actor="
	logDropped  = "DEBUG system message dropped: the actor has stopped actor="
	logNoTaker  = "DEBUG system message dropped: the actor is no SystemReceiver actor="
	logMisfit   = "DEBUG failed a message that was no ask actor="
	logUntold   = "DEBUG a subscriber was not told subscriber="
)

// logged looks whether a line may be in the log.
func (w *world) logged(line string) {
	w.note("log: %s", line)
	if w.due != "" {
		if line != w.due {
			w.wrong("%q was logged, and not %q", line, w.due)
		}
		w.due = ""
		return
	}
	switch {
	case strings.HasPrefix(line, logFailed):
		if w.lastFailed != "" {
			w.wrong("there is no event for %q", w.lastFailed)
		}
		w.lastFailed = line
	case strings.HasPrefix(line, logStrategy):
		path, _, _ := strings.Cut(line[len(logStrategy):], " ")
		if l := w.at[path]; l != nil && (l.ruleOf() == nil || l.ruleOf().form != panicking) {
			w.wrong("the strategy for %v has not panicked: %q", l, line)
		}
	case strings.HasPrefix(line, logDropped):
		w.dropped = line[len(logDropped):]
	case strings.HasPrefix(line, logNoTaker):
		if !w.routerOrEnding(line[len(logNoTaker):]) {
			w.wrong("it takes system messages: %q", line)
		}
	case strings.HasPrefix(line, logUntold):
		name, why, _ := strings.Cut(line[len(logUntold):], " ")
		w.untold(name, why)
	case strings.HasPrefix(line, logMisfit) && w.misfit(line[len(logMisfit):]):
	default:
		w.wrong("nothing is known of %q", line)
	}
}

// routerOrEnding says that there is an actor of that name that takes no system
// messages: a router, or one that ends without ever having started.
func (w *world) routerOrEnding(name string) bool {
	for _, l := range w.lives {
		if l.name() == name && (l.isRouter || l.ref.Stopped() && !l.over) {
			return true
		}
	}
	return false
}

// misfit says that a router was to be resized to what the log says it cannot.
func (w *world) misfit(what string) bool {
	for _, l := range w.lives {
		if len(l.misfits) > 0 && strings.HasPrefix(what, fmt.Sprintf("%s err=router: invalid: %d workers;", l.name(), l.misfits[0])) {
			l.misfits = l.misfits[1:]
			return true
		}
	}
	return false
}

// untold notes that a full mailbox did not take the event, or the dead letter,
// that is being published.
func (w *world) untold(name, why string) {
	for _, l := range w.lives {
		if l.over || l.name() != name || l.props.policy != actor.Fail || !strings.Contains(why, l.path+": "+actor.ErrMailboxFull.Error()) {
			continue
		}
		if l.ref.MailboxLen() < l.props.capacity {
			w.wrong("%v was not told something, and has room", l)
		}
		l.heard.missed++
		return
	}
	w.wrong("%s was not told something: %s", name, why)
}

// loggedFailure looks whether the log says of a failure what its event says.
func (w *world) loggedFailure(e actor.Event) {
	want := fmt.Sprintf("%sactor=%s err=%v directive=%v", logFailed, e.Ref.Path(), e.Reason, e.Directive)
	if w.lastFailed != want {
		w.wrong("%q was logged, and not %q", w.lastFailed, want)
	}
	w.lastFailed = ""
}

// visitLog logs by the Context's logger, plainly, with attributes, or in a
// group. The actor's path is always there, and in no group.
func (t *turn) visitLog(n int) {
	l, w, log := t.body.life, t.body.w, t.ctx.Logger()
	switch n % 4 {
	case 0:
		w.logs("INFO visited n=%d actor=%s", n, l.path)
		log.Info("visited", "n", n)
	case 1:
		w.logs("INFO visited actor=%s visit.n=%d", l.path, n)
		log.WithGroup("visit").Info("visited", "n", n)
	case 2:
		w.logs("INFO visited actor=%s k=%d n=%d", l.path, l.number, n)
		log.With("k", l.number).Info("visited", "n", n)
	default:
		w.logs("INFO visited actor=%s k=%d visit.n=%d", l.path, l.number, n)
		log.With("k", l.number).WithGroup("visit").Info("visited", "n", n)
	}
	w.logDue()
}

// panicked is what a panic is in the log.
func panicked(with any) string { return (&actor.PanicError{Value: with}).Error() }

var errEars = errors.New("a subscriber that cannot bear it")

// earful is a subscriber that panics at times: those behind it are told all the
// same.
func (w *world) earful() {
	if w.heardAll++; w.heardAll%11 != 0 {
		return
	}
	w.logs("ERROR a subscriber panicked err=%s", panicked(errEars))
	panic(errEars)
}
