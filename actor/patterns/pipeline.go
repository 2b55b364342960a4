package patterns

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/actor"
)

// PipelineConfig tunes a Pipeline. The zero value works.
type PipelineConfig struct {
	// Limit is how many messages may be on their way through it at a time, each
	// counted as often as hubs have it go several. 0 means 10,000.
	Limit int
	// Timeout is how long a stage may have a message, give or take a quarter; then
	// it has failed with actor.ErrTimeout. So what a stage took over and forgot,
	// as in a restart, comes to an end. 0 means 10 minutes.
	Timeout time.Duration
	// Supervisor decides about failures of stages. Nil means that a stage goes
	// on with the next message after an error, and is restarted after a panic, at
	// most 5 times a minute.
	Supervisor *actor.Strategy
}

// Pipeline returns the props of an actor that sends messages through stages,
// each an actor that is its child. A message goes to the first stage, what that
// answers to the second, and so on; what the last one answers is the answer of
// the pipeline. From stage to stage order is kept.
//
// A stage answers as any actor does, by Context.Respond or later by
// Context.Defer. A stage that does not answer has kept the message to itself:
// there its way ends. What a stage tells the pipeline, which is its parent and
// the sender of what it gets, goes to the next stage as a message of its own; so
// a stage may make several messages of one, or be a feed that makes them of
// nothing. What any other actor sends, even one of a stage's kind, goes to the
// first stage.
//
// The answer goes to the asker; of a message that was told, to the origin if it
// is a Returner, else to the sender, and without any it is a dead letter. Where
// a hub has had it go several ways, an ask is answered by the first that comes to
// the end, and fails when none does; what was told has every one told.
//
// When a stage fails, or stops with the message in hand, an ask fails with
// StageFailed, and the origin or sender of what was told gets that as a message.
// A stage that has stopped is started again by the next message for it.
//
// Messages beyond the Limit are dead letters, and their asks fail with an
// *actor.FullError; so are, when the pipeline stops, those on their way, and
// their asks fail with actor.ErrStopped.
//
// The error wraps actor.ErrInvalid: a stage has no Props.New, or a name is taken
// twice. A stage that cannot be spawned for another reason, such as a name that
// no actor can have, is what messages fail with. Without stages a pipeline
// answers with what it gets.
func Pipeline(cfg PipelineConfig, stages ...Stage) (actor.Props, error) {
	line, err := layout(stages)
	if err != nil {
		return actor.Props{}, err
	}
	if cfg.Limit <= 0 {
		cfg.Limit = 10_000
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Minute
	}
	if cfg.Supervisor == nil {
		cfg.Supervisor = &actor.Strategy{
			Choose: actor.ByError(actor.Resume, actor.WhenType[*actor.PanicError](actor.Restart)),
		}
	}
	return actor.Props{
		New: func() actor.Actor {
			return &pipeline{
				line: line, limit: cfg.Limit, timeout: cfg.Timeout,
				place: make(map[*actor.Ref]int), hops: make(map[*actor.Promise]*hop),
			}
		},
		Supervisor: cfg.Supervisor,
	}, nil
}

// pipeline passes answers on by its own mailbox, where they come with the
// promise that was answered: that says which hop they end.
type pipeline struct {
	line     [][]Stage // the actors of each stage
	limit    int
	timeout  time.Duration
	place    map[*actor.Ref]int // which stage an actor is of
	hops     map[*actor.Promise]*hop
	count    uint64 // of hops
	sweeping bool   // a timer is set
}

// sweep is the message of the timer that looks for hops that last too long.
type sweep struct{}

// hop is a message that a stage has.
type hop struct {
	number uint64
	since  time.Time
	way    *way
	place  int
	stage  *actor.Ref
}

// PreStart starts the stages. One that cannot be, for its name or its mailbox, is
// what each message for it fails with.
func (p *pipeline) PreStart(ctx *actor.Context) error {
	for at, stage := range p.line {
		for _, one := range stage {
			if _, err := p.start(ctx, at, one); err != nil {
				ctx.Logger().Error("a stage cannot be started", "stage", one.Name, "err", err)
			}
		}
	}
	return nil
}

// start returns the live actor of a stage.
func (p *pipeline) start(ctx *actor.Context, at int, one Stage) (*actor.Ref, error) {
	ref, _, err := ctx.Self().EnsureChild(one.Name, func() actor.Props { return one.Props })
	if err == nil {
		p.place[ref] = at
	}
	return ref, err
}

func (p *pipeline) Receive(ctx *actor.Context, msg any) error {
	switch m := msg.(type) {
	case actor.Terminated:
		p.lost(m)
		return nil
	case ToStage:
		p.direct(ctx, m)
		return nil
	case sweep:
		p.sweep(ctx)
		return nil
	}
	m := take(ctx)
	if h, ok := p.hops[m.Reply]; ok {
		delete(p.hops, m.Reply)
		p.arrived(ctx, h, msg)
		return nil
	}
	next := 0
	if m.Sender != nil {
		if at, ok := p.place[m.Sender]; ok {
			next, m.Sender = at+1, nil
		} else if m.Sender.Parent() == ctx.Self() {
			refuse(ctx.Self(), m, fmt.Errorf("from stage %s after its end: %w", m.Sender, actor.ErrStopped))
			return nil
		}
	}
	if len(p.hops) >= p.limit {
		refuse(ctx.Self(), m, &actor.FullError{Ref: ctx.Self(), Capacity: p.limit})
		return nil
	}
	p.give(ctx, &way{msg: m, branches: 1}, next, msg)
	return nil
}

// arrived goes on with what a stage has answered.
func (p *pipeline) arrived(ctx *actor.Context, h *hop, answer any) {
	if f, ok := answer.(StageFailed); ok {
		h.way.fail(ctx, f)
		return
	}
	p.give(ctx, h.way, h.place+1, answer)
}

// give has a branch go on at a stage, or come to its end.
func (p *pipeline) give(ctx *actor.Context, w *way, at int, msg any) {
	if at == len(p.line) {
		w.end(ctx, msg)
		return
	}
	stage := p.line[at]
	w.branches += len(stage) - 1
	for _, one := range stage {
		p.hand(ctx, w, at, one, msg)
	}
	if len(stage) == 0 { // a hub without members: there it ends
		w.close()
	}
}

// hand gives a message to one actor of a stage.
func (p *pipeline) hand(ctx *actor.Context, w *way, at int, one Stage, msg any) {
	self := ctx.Self()
	ref, err := p.start(ctx, at, one)
	if err != nil {
		w.fail(ctx, StageFailed{Stage: one.Name, Message: msg, Err: err})
		return
	}
	var reply *actor.Promise
	reply = ctx.System().OnReply(func(v any, err error) {
		if err != nil {
			v = StageFailed{Stage: one.Name, Message: msg, Err: err}
		}
		_ = self.Post(actor.Message{Payload: v, Sender: ref, Reply: reply}) // its mailbox is unbounded
	})
	p.count++
	p.hops[reply] = &hop{number: p.count, since: ctx.Now(), way: w, place: at, stage: ref}
	p.watch(ctx)
	if err := ref.Post(actor.Message{Payload: msg, Sender: self, Reply: reply}); err != nil {
		reply.Fail(err)
	}
}

// direct passes the content of a ToStage on.
func (p *pipeline) direct(ctx *actor.Context, to ToStage) {
	m := take(ctx)
	for at, stage := range p.line {
		i := slices.IndexFunc(stage, func(s Stage) bool { return s.Name == to.Stage })
		if i < 0 {
			continue
		}
		ref, err := p.start(ctx, at, stage[i])
		if err == nil {
			m.Payload = to.Message
			err = ref.Post(m)
		}
		if err != nil {
			refuse(ctx.Self(), m, err)
		}
		return
	}
	refuse(ctx.Self(), m, fmt.Errorf("stage %q: %w", to.Stage, actor.ErrNotFound))
}

// lost ends what a stage that has stopped had taken over.
func (p *pipeline) lost(t actor.Terminated) {
	delete(p.place, t.Ref)
	reason := t.Reason
	if reason == nil {
		reason = fmt.Errorf("before it answered: %w", actor.ErrStopped)
	}
	p.cut(func(h *hop) bool { return h.stage == t.Ref }, reason)
}

// watch has a sweep come as long as there are hops.
func (p *pipeline) watch(ctx *actor.Context) {
	if !p.sweeping && len(p.hops) > 0 {
		p.sweeping = true
		ctx.ScheduleOnce(p.timeout/4, ctx.Self(), sweep{})
	}
}

func (p *pipeline) sweep(ctx *actor.Context) {
	begun := ctx.Now().Add(-p.timeout)
	p.cut(func(h *hop) bool { return !h.since.After(begun) }, fmt.Errorf("within %v: %w", p.timeout, actor.ErrTimeout))
	p.sweeping = false
	p.watch(ctx)
}

// cut fails the open hops that are so, in the order of their beginning.
func (p *pipeline) cut(so func(*hop) bool, reason error) {
	byAge := func(a, b *actor.Promise) int { return cmp.Compare(p.hops[a].number, p.hops[b].number) }
	for _, reply := range slices.SortedFunc(maps.Keys(p.hops), byAge) {
		if so(p.hops[reply]) && !reply.Done() {
			reply.Fail(reason)
		}
	}
}

// PreRestart ends what is on its way.
func (p *pipeline) PreRestart(ctx *actor.Context, _ error, _ any) { p.PostStop(ctx) }

// PostStop ends what is on its way.
func (p *pipeline) PostStop(ctx *actor.Context) {
	left := slices.SortedFunc(maps.Values(p.hops), func(a, b *hop) int { return cmp.Compare(a.number, b.number) })
	for _, h := range left {
		if w := h.way; w.branches > 0 {
			w.branches = 0
			if w.msg.Reply == nil || !w.msg.Reply.Done() {
				refuse(ctx.Self(), w.msg, fmt.Errorf("%s stopped with it on its way: %w", ctx.Self(), actor.ErrStopped))
			}
		}
	}
}
