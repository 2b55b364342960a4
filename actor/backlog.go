package actor

// aheadInRow is how many tasks that signals wait for come before one of the others.
const aheadInRow = 8

// backlog is the dispatcher's global queue: actors for whom there is a signal, such as
// to stop, and the others, each in their order. Who is to stop does not wait behind
// what all others have to do; but signals without end keep nobody waiting either.
type backlog struct {
	ahead, rest fifo[*Ref]
	inRow       int // taken from ahead since one of the others was
}

func (b *backlog) len() int { return b.ahead.n + b.rest.n }

func (b *backlog) push(r *Ref) {
	if r.is(urgent) {
		b.ahead.push(r)
	} else {
		b.rest.push(r)
	}
}

// pop returns nil when nobody waits.
func (b *backlog) pop() *Ref {
	if b.ahead.n > 0 && (b.inRow < aheadInRow || b.rest.n == 0) {
		b.inRow++
		return b.ahead.pop()
	}
	b.inRow = 0
	return b.rest.pop()
}
