package patterns

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twinsrv/twinsrv/actor"
)

// YesNoConfig tunes a DelegatedYesNo. The zero value works.
type YesNoConfig struct {
	// Delegator is who delegates; nil is the parent.
	Delegator *actor.Ref
	// Yes and No are the words for each, in lower case. None means "yes" and "y",
	// "no" and "n".
	Yes, No []string
	// Again is what a text that is neither is answered with, such as the question.
	// Nil fails an ask with actor.ErrInvalid, and ignores what was told.
	Again any
}

// YesNo is the answer that a DelegatedYesNo got: the Payload of
// actor.DelegationEnded. An ask with the text is answered with it too.
type YesNo struct{ Yes bool }

// DelegatedYesNo returns the props of an actor that another delegates to
// (actor.Context.DelegateTo) until somebody has said yes or no. It takes the
// first text that is one of the words, whatever its case and the space around
// it, ends the delegation with a YesNo, and stops.
//
// Messages that are no strings are not its own: up to 10,000 of them wait, and
// are given back right behind the answer, with their senders and asks. Others
// that reach the delegator in that moment may overtake them; what must not wait
// is marked as actor.NonDelegated, and never comes here.
func DelegatedYesNo(cfg YesNoConfig) actor.Props {
	if len(cfg.Yes) == 0 {
		cfg.Yes = []string{"yes", "y"}
	}
	if len(cfg.No) == 0 {
		cfg.No = []string{"no", "n"}
	}
	return actor.PropsOf(func() actor.Actor { return &delegatedYesNo{cfg: cfg} })
}

// maxKept is how many messages wait for the answer.
const maxKept = 10_000

type delegatedYesNo struct {
	cfg  YesNoConfig
	kept fifo // not its own
}

func (d *delegatedYesNo) delegator(ctx *actor.Context) *actor.Ref {
	if d.cfg.Delegator != nil {
		return d.cfg.Delegator
	}
	return ctx.Parent()
}

func (d *delegatedYesNo) Receive(ctx *actor.Context, msg any) error {
	text, ok := msg.(string)
	if !ok {
		d.keep(ctx)
		return nil
	}
	word := strings.ToLower(strings.TrimSpace(text))
	yes := slices.Contains(d.cfg.Yes, word)
	if !yes && !slices.Contains(d.cfg.No, word) {
		d.again(ctx, text)
		return nil
	}
	if ctx.Message().Reply != nil {
		ctx.Respond(YesNo{yes})
	}
	ctx.EndDelegation(d.delegator(ctx), YesNo{yes})
	for d.kept.len() > 0 {
		d.giveBack(ctx, d.kept.pop())
	}
	ctx.Become(d.pass)
	ctx.Retire()
	return nil
}

func (d *delegatedYesNo) keep(ctx *actor.Context) {
	m := take(ctx)
	if d.kept.len() >= maxKept {
		refuse(ctx.Self(), m, &actor.FullError{Ref: ctx.Self(), Capacity: maxKept})
		return
	}
	d.kept.push(m)
}

func (d *delegatedYesNo) again(ctx *actor.Context, text string) {
	switch {
	case d.cfg.Again != nil && (ctx.Message().Reply != nil || ctx.Sender() != nil):
		ctx.Respond(d.cfg.Again)
	case d.cfg.Again == nil:
		ctx.Fail(fmt.Errorf("%w: %q is neither yes nor no", actor.ErrInvalid, text))
	}
}

// pass gives back what still comes until the delegator has heard, and stops when
// nothing does: what comes then waits at the delegator.
func (d *delegatedYesNo) pass(ctx *actor.Context, _ any) error {
	d.giveBack(ctx, take(ctx))
	ctx.Retire()
	return nil
}

// giveBack sends a message behind the end of the delegation, so that it does not
// come here again.
func (d *delegatedYesNo) giveBack(ctx *actor.Context, m actor.Message) {
	if err := d.delegator(ctx).Post(m); err != nil {
		refuse(ctx.Self(), m, err)
	}
}

// PreRestart ends what the instance that is dropped has in hand.
func (d *delegatedYesNo) PreRestart(ctx *actor.Context, _ error, _ any) { d.PostStop(ctx) }

// PostStop ends what waits for an answer that has not come.
func (d *delegatedYesNo) PostStop(ctx *actor.Context) { d.kept.abandon(ctx.Self()) }
