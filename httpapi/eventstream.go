package httpapi

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// eventPart is how many bytes of events a client has its time to receive.
const eventPart = 16 << 10

// eventStream is an answer of server-sent events. It belongs to the request's
// goroutine. Each part of an event has its time to be received. A client that
// takes nothing in it is cut off without a word, since none would reach it; one
// that takes something can be told why the stream ends.
type eventStream struct {
	call    *call
	control *http.ResponseController
	buf     bytes.Buffer
	known   *[]digest // the server's tokens when it last looked whether its own is among them
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
	var err error
	for data := s.buf.Bytes(); len(data) > 0 && err == nil; {
		part := data[:min(len(data), eventPart)]
		s.timed()
		_, err = s.call.w.Write(part)
		data = data[len(part):]
	}
	if s.buf.Cap() > 1<<20 {
		s.buf = bytes.Buffer{}
	}
	s.buf.Reset()
	if err == nil {
		s.timed()
		err = s.control.Flush()
	}
	return err
}

func (s *eventStream) timed() {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.call.api.patience))
}

// beats returns a ticker of heartbeats.
func (s *eventStream) beats() *time.Ticker { return time.NewTicker(s.call.api.cfg.Heartbeat) }
