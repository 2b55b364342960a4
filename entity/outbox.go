package entity

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/persist"
)

const (
	// maxUnderWay is how many messages of a sender to one receiver are under way
	// at a time.
	maxUnderWay = 64
	// tidyAfter is how long rows of acknowledged messages wait for a commit that
	// takes them along.
	tidyAfter = 100 * time.Millisecond
	// A line that was refused for the time being pauses from minResend to
	// maxResend.
	minResend = 10 * time.Millisecond
	maxResend = 5 * time.Second
	// lostAfter is how long an answer may take before the line is sent again.
	lostAfter = time.Minute
)

// outbox holds the messages of SendOnce that are not acknowledged.
type outbox struct {
	last  uint64 // the last number given, in this life
	count int
	lines map[persist.Key]*line
	done  []persist.RowOp // of acknowledged messages, to be removed
	tidy  *tidyTimer
}

// line is the ordered way to one receiver.
type line struct {
	parcels  []*parcel // in the order of their numbers
	sent     int       // how many of the first have been sent
	underWay int       // of these, how many have no answer
	again    bool      // one was refused for the time being: all go again once none is under way
	pause    time.Duration
	wake     *lineTimer // fires when the line goes on, or is to be looked after
	round    uint64     // counts how often the line was sent anew; answers to an earlier round do not count
	answers  uint64     // that came at all
}

// parcel is one message of SendOnce.
type parcel struct {
	number  uint64
	to      persist.Key
	what    string
	body    []byte
	durable bool // it may be sent
	done    bool // the receiver has had its last word on it
	told    bool // which was no, and is a dead letter
	unheard bool // its turn was failed by a deletion that failed itself
}

// The messages that an outbox's own work sends its entity.
type (
	parcelAnswered struct {
		line   *line
		round  uint64
		life   uint64 // the sender's
		parcel *parcel
		err    error
	}
	lineTimer struct {
		t       actor.Timer
		line    *line
		to      persist.Key
		answers uint64 // the line's when the timer was set
	}
	tidyTimer struct{ t actor.Timer }
)

// add takes a turn's messages in and returns their rows.
func (o *outbox) add(parcels []*parcel) []persist.RowOp {
	if len(parcels) == 0 {
		return nil
	}
	rows := make([]persist.RowOp, 0, len(parcels)+1)
	for _, p := range parcels {
		o.last++
		p.number = o.last
		o.put(p)
		rows = append(rows, persist.RowOp{Kind: OutboxRows, ID: p.id(), Value: p.encode()})
	}
	if mutant.On(mutant.OnceNumbersReused) {
		return rows
	}
	return append(rows, persist.RowOp{Kind: numberRows, ID: lastNumber, Value: binary.AppendUvarint(nil, o.last)})
}

func (o *outbox) put(p *parcel) {
	if o.lines == nil {
		o.lines = make(map[persist.Key]*line)
	}
	l := o.lines[p.to]
	if l == nil {
		l = &line{}
		o.lines[p.to] = l
	}
	l.parcels = append(l.parcels, p)
	o.count++
}

// removed returns the rows of acknowledged messages, for the commit that
// follows.
func (o *outbox) removed() []persist.RowOp {
	if o == nil {
		return nil
	}
	rows := o.done
	o.done = nil
	if len(rows) > 0 {
		o.stopTidy()
	}
	return rows
}

// idle reports whether nothing is to be delivered or tidied up.
func (o *outbox) idle() bool { return o == nil || o.count == 0 && len(o.done) == 0 }

// size is how many messages are not tidied up.
func (o *outbox) size() int {
	if o == nil {
		return 0
	}
	return o.count
}

// line returns the way to a receiver, nil if nothing is on it.
func (o *outbox) line(to persist.Key) *line {
	if o == nil {
		return nil
	}
	return o.lines[to]
}

// undelivered returns how many messages to others are not acknowledged, and
// whether some of them are not taken at the moment.
func (o *outbox) undelivered(self persist.Key) (n int, refused bool) {
	if o == nil {
		return 0, false
	}
	n = o.count
	for to, l := range o.lines {
		if to != self {
			refused = refused || l.again
			continue
		}
		for _, p := range l.parcels {
			if !p.done {
				n--
			}
		}
	}
	return n, refused
}

// stop ends the outbox's timers.
func (o *outbox) stop() {
	if o == nil {
		return
	}
	o.stopTidy()
	for _, l := range o.lines {
		l.stopWake()
	}
}

func (o *outbox) stopTidy() {
	if o.tidy != nil {
		o.tidy.t.Stop()
		o.tidy = nil
	}
}

func (l *line) stopWake() {
	if l.wake != nil {
		l.wake.t.Stop()
		l.wake = nil
	}
}

// receivers returns the keys of the lines in order.
func (o *outbox) receivers() []persist.Key {
	if o == nil {
		return nil
	}
	keys := make([]persist.Key, 0, len(o.lines))
	for k := range o.lines {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b persist.Key) int { return cmp.Or(cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Name, b.Name)) })
	return keys
}

func (p *parcel) id() string { return fmt.Sprintf("%016x", p.number) }

// encode writes the parcel as its row: three texts with their lengths, then the
// body.
func (p *parcel) encode() []byte {
	v := make([]byte, 0, len(p.to.Pod)+len(p.to.Name)+len(p.what)+len(p.body)+8)
	for _, s := range []string{p.to.Pod, p.to.Name, p.what} {
		v = binary.AppendUvarint(v, uint64(len(s)))
		v = append(v, s...)
	}
	return append(v, p.body...)
}

func (o *outbox) parse(r persist.Row) (err error) {
	if r.Kind == numberRows {
		n, size := binary.Uvarint(r.Value)
		if size <= 0 || size != len(r.Value) {
			return errors.New("it is not a number")
		}
		o.last = max(o.last, n)
		return nil
	}
	p := &parcel{durable: true}
	if p.number, err = strconv.ParseUint(r.ID, 16, 64); err != nil {
		return err
	}
	rest := r.Value
	for _, s := range []*string{&p.to.Pod, &p.to.Name, &p.what} {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(len(rest)-size) {
			return errors.New("it is not a message")
		}
		*s, rest = string(rest[size:size+int(n)]), rest[size+int(n):]
	}
	p.body = rest
	o.last = max(o.last, p.number)
	o.put(p)
	return nil
}

// dispatchParcel sends a message that has become durable, behind those before
// it.
func (a *activation) dispatchParcel(ctx *actor.Context, p *parcel) {
	p.durable = true
	if l := a.mail.outbox.line(p.to); l != nil {
		a.sendLine(ctx, l)
	}
}

// resumeOutbox sends what was read from the store: at once, unless a commit has
// just failed. Entities whose store is away would else keep each other busy.
func (a *activation) resumeOutbox(ctx *actor.Context) {
	if mutant.On(mutant.OutboxNotResumed) {
		return
	}
	for _, k := range a.mail.outbox.receivers() {
		l := a.mail.outbox.line(k)
		if a.setback == 0 {
			a.sendLine(ctx, l)
			continue
		}
		l.again, l.pause = true, a.setback
		a.wakeLine(ctx, l, k, l.pause)
	}
}

// sendLine sends as many messages of a line as may be under way. While
// everything ends it sends none: what is durable goes out at the next start, and
// entities that owe each other messages would else wake each other for as long as
// they are sent away. Those of a volatile entity are sent, for they end with the
// process.
func (a *activation) sendLine(ctx *actor.Context, l *line) {
	if a.poison != nil || l.again || a.host.Closing() && !a.spec.Durability.IsVolatile() {
		return
	}
	behind := uint64(0)
	for i := l.sent - 1; i >= 0 && behind == 0; i-- {
		if !l.parcels[i].done {
			behind = l.parcels[i].number
		}
	}
	for l.sent < len(l.parcels) && l.underWay < maxUnderWay && l.parcels[l.sent].durable {
		p := l.parcels[l.sent]
		l.sent++
		if p.done {
			continue
		}
		l.underWay++
		a.sendParcel(ctx, l, p, behind)
		behind = p.number
	}
	if l.underWay > 0 && l.wake == nil {
		a.wakeLine(ctx, l, l.parcels[0].to, lostAfter)
	}
}

func (a *activation) sendParcel(ctx *actor.Context, l *line, p *parcel, behind uint64) {
	self, round, life := a.self, l.round, a.head.life
	reply := ctx.System().OnReply(func(_ any, err error) {
		self.TellSystem(parcelAnswered{line: l, round: round, life: life, parcel: p, err: err})
	})
	if mutant.On(mutant.OnceOrderLost) {
		behind = 0
	}
	m, err := a.host.Decode(p.to.Pod, p.what, p.body)
	if err == nil {
		m.once = &once{from: a.key, life: a.head.life, number: p.number, behind: behind}
		if p.to == a.key {
			m.Life, m.NoCreate = a.head.life, true // to this life, not to one that follows
		}
		err = a.host.Post(p.to, actor.Message{Payload: m, Sender: self, Reply: reply})
	}
	if err != nil {
		reply.Fail(err)
	}
}

// wakeLine looks at a line again after a while.
func (a *activation) wakeLine(ctx *actor.Context, l *line, to persist.Key, d time.Duration) {
	l.stopWake()
	due, self := &lineTimer{line: l, to: to, answers: l.answers}, a.self
	l.wake = due
	due.t = ctx.System().After(d, func() { self.TellSystem(due) })
}

// lineDue sends a line again that paused, or whose answers have ceased.
func (a *activation) lineDue(ctx *actor.Context, due *lineTimer) {
	l := due.line
	if a.mail.outbox.line(due.to) != l || l.wake != due {
		return
	}
	l.wake = nil
	if !l.again && l.answers != due.answers { // it is moving
		a.wakeLine(ctx, l, due.to, lostAfter)
		return
	}
	l.again, l.sent, l.underWay = false, 0, 0
	l.round++
	a.sendLine(ctx, l)
}

// parcelAnswered takes a receiver's answer.
func (a *activation) parcelAnswered(ctx *actor.Context, m parcelAnswered) {
	l, p := m.line, m.parcel
	if a.mail.outbox.line(p.to) != l || l.round != m.round {
		a.lateAnswer(ctx, m) // from before the outbox was read anew, or to what was sent again
		return
	}
	l.underWay--
	l.answers++
	switch {
	case m.err == nil:
		a.parcelDone(ctx, l, p)
	case later(m.err):
		l.again = true
	default:
		a.refused(ctx, p, m.err)
		a.parcelDone(ctx, l, p)
	}
	switch {
	case len(l.parcels) == 0:
		l.stopWake()
		delete(a.mail.outbox.lines, p.to)
	case l.again && l.underWay == 0:
		l.pause = min(max(2*l.pause, minResend), maxResend)
		a.wakeLine(ctx, l, p.to, l.pause)
	case !l.again:
		a.sendLine(ctx, l)
	}
	a.runBarrier(ctx)
}

// lateAnswer hears from a receiver what it said of a message before that was sent
// again. Its answer to the repetition counts, but for one thing: a message that it
// has refused it knows then, if it exists, and does not refuse again.
func (a *activation) lateAnswer(ctx *actor.Context, m parcelAnswered) {
	if m.err == nil || later(m.err) || m.parcel.done || a.phase == serving && m.life != a.head.life {
		return
	}
	if l := a.mail.outbox.line(m.parcel.to); l != nil {
		for _, p := range l.parcels {
			if p != nil && p.number == m.parcel.number {
				a.refused(ctx, p, m.err)
				return
			}
		}
	}
	a.refused(ctx, m.parcel, m.err)
}

// parcelDone notes that a receiver has had its last word on a message.
func (a *activation) parcelDone(ctx *actor.Context, l *line, p *parcel) {
	o := a.mail.outbox
	p.done, l.pause = true, 0
	o.count--
	o.done = append(o.done, persist.RowOp{Kind: OutboxRows, ID: p.id(), Delete: true})
	for len(l.parcels) > 0 && l.parcels[0].done {
		l.parcels[0] = nil
		l.parcels = l.parcels[1:]
		l.sent = max(l.sent-1, 0)
	}
	if o.tidy == nil {
		a.tidySoon(ctx)
	}
}

// refused makes a dead letter of a message, once.
func (a *activation) refused(ctx *actor.Context, p *parcel, err error) {
	if p.told {
		return
	}
	p.told = true
	ctx.System().DeadLetters().Publish(actor.ZombieMsg{
		To: p.to.String(), Message: actor.Message{Payload: Undelivered{Type: p.what, Body: p.body}, Sender: a.self}, Reason: err, At: ctx.Now(),
	})
}

// Undelivered is the dead letter of a message of SendOnce that its receiver
// refused: the message's name and its encoding.
type Undelivered struct {
	Type string
	Body []byte
}

func (a *activation) tidySoon(ctx *actor.Context) {
	due, self := &tidyTimer{}, a.self
	a.mail.outbox.tidy = due
	due.t = ctx.System().After(tidyAfter, func() { self.TellSystem(due) })
}

// tidyDue removes the rows of acknowledged messages, if no other commit took
// them along. When it is not the time for it they wait on.
func (a *activation) tidyDue(ctx *actor.Context, due *tidyTimer) {
	o := a.mail.outbox
	if o == nil || o.tidy != due {
		return
	}
	o.tidy = nil
	switch {
	case len(o.done) == 0:
	case a.holds&^holdFull != 0 || a.phase != serving:
		a.tidySoon(ctx)
	default:
		e := &entry{silent: true}
		a.keep(ctx, e, o.removed())
		a.push(ctx, e)
	}
}
