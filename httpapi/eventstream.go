package httpapi

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// eventStream is an answer of server-sent events. It belongs to the request's
// goroutine. Each event has its time to be received; a client that does not
// take it is cut off.
type eventStream struct {
	call    *call
	control *http.ResponseController
	buf     bytes.Buffer
}

// eventStream begins the answer. The server's own timeouts, which are for
// requests that end soon, hold no more.
func (c *call) eventStream() *eventStream {
	s := &eventStream{call: c, control: http.NewResponseController(c.w)}
	_ = s.control.SetReadDeadline(time.Time{}) // a recorder of a test has none
	h := c.w.Header()
	h.Set("Content-Type", eventsType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies that would hold it back
	c.w.WriteHeader(http.StatusOK)
	s.buf.WriteString(": " + strconv.Itoa(int(c.api.cfg.Heartbeat/time.Millisecond)) + " ms between heartbeats\n\n")
	_ = s.flush() // whoever has gone is noticed later
	return s
}

// add puts an event behind those that are not sent yet. The data is one line of
// JSON; the id may be empty.
func (s *eventStream) add(event, id string, data []byte) {
	if id != "" {
		s.buf.WriteString("id: " + id + "\n")
	}
	s.buf.WriteString("event: " + event + "\ndata: ")
	s.buf.Write(data)
	s.buf.WriteString("\n\n")
}

// heartbeat sends a comment.
func (s *eventStream) heartbeat() error {
	s.buf.WriteString(":\n\n")
	return s.flush()
}

// pending is how many bytes wait to be sent.
func (s *eventStream) pending() int { return s.buf.Len() }

// flush sends what was added.
func (s *eventStream) flush() error {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.call.api.patience))
	_, err := s.call.w.Write(s.buf.Bytes())
	if s.buf.Cap() > 1<<20 {
		s.buf = bytes.Buffer{}
	}
	s.buf.Reset()
	if err == nil {
		err = s.control.Flush()
	}
	return err
}

// beats returns a ticker of heartbeats.
func (s *eventStream) beats() *time.Ticker { return time.NewTicker(s.call.api.cfg.Heartbeat) }
