package actor

import "sync"

// buffers lends large message buffers to the mailboxes of a system: a burst
// takes them and rest gives them back, so that an actor that is often in a
// burst neither keeps a large buffer while idle nor grows one each time. What
// is not used goes with the garbage collector.
//
// All buffers in it are empty up to their capacity.
type buffers struct {
	small, middle, large sync.Pool // *[smallBuffer]Message and so on
}

const (
	smallBuffer  = 4 * keptCap
	middleBuffer = 4 * smallBuffer
	largeBuffer  = 4 * middleBuffer
)

// grown returns a larger buffer with the same messages and takes the old one.
func (b *buffers) grown(old []Message) []Message {
	var bigger []Message
	switch c := cap(old); {
	case c < smallBuffer:
		if a, ok := b.small.Get().(*[smallBuffer]Message); ok {
			bigger = a[:0]
		} else {
			bigger = new([smallBuffer]Message)[:0]
		}
	case c < middleBuffer:
		if a, ok := b.middle.Get().(*[middleBuffer]Message); ok {
			bigger = a[:0]
		} else {
			bigger = new([middleBuffer]Message)[:0]
		}
	case c < largeBuffer:
		if a, ok := b.large.Get().(*[largeBuffer]Message); ok {
			bigger = a[:0]
		} else {
			bigger = new([largeBuffer]Message)[:0]
		}
	default:
		bigger = make([]Message, 0, 2*c)
	}
	bigger = append(bigger, old...)
	clear(old)
	b.giveBack(old)
	return bigger
}

// giveBack takes a buffer that is not used any more. All of it must be empty.
func (b *buffers) giveBack(buf []Message) {
	switch cap(buf) {
	case smallBuffer:
		b.small.Put((*[smallBuffer]Message)(buf[:smallBuffer]))
	case middleBuffer:
		b.middle.Put((*[middleBuffer]Message)(buf[:middleBuffer]))
	case largeBuffer:
		b.large.Put((*[largeBuffer]Message)(buf[:largeBuffer]))
	}
}
