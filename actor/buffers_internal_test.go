package actor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A buffer that is lent again is empty, and one that grows keeps its messages.
func TestGrownBuffersKeepTheirMessagesAndLentOnesAreEmpty(t *testing.T) {
	var b buffers
	for range 3 {
		var buf []Message
		for i := range 3 * largeBuffer {
			if len(buf) == cap(buf) && len(buf) >= keptCap {
				old := buf
				buf = b.grown(buf)
				for _, m := range old {
					require.Nil(t, m.Payload)
				}
				for _, m := range buf[len(buf):cap(buf)] {
					require.Nil(t, m.Payload)
				}
			}
			buf = append(buf, Message{Payload: i})
		}
		for i, m := range buf {
			require.Equal(t, i, m.Payload)
		}
		clear(buf)
		b.giveBack(buf)
	}
}
