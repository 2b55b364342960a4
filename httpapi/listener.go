package httpapi

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
)

// Listener returns a listener for the http.Server of an API. Of its connections
// also those requests are answered with a Problem that the server refuses before
// it asks a handler, since it cannot read them.
func Listener(l net.Listener) net.Listener { return &listener{l} }

type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{c}, nil
}

// conn is a connection whose server writes some answers by itself.
type conn struct{ net.Conn }

// What net/http answers a request with that it cannot read, in one piece: no
// answer of a handler begins so, since those have other headers before these.
const (
	unreadLine    = "HTTP/1.1 400 Bad Request"
	unreadHeaders = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
)

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	if !bytes.HasPrefix(b, []byte(unreadLine)) {
		return c.Conn.Write(b)
	}
	line, _, found := bytes.Cut(b, []byte(unreadHeaders))
	if !found || bytes.Contains(line, []byte("\r\n")) {
		return c.Conn.Write(b)
	}
	detail := "the request cannot be read: the path and the query must be percent-encoded, and the headers must be of HTTP"
	if why, said := bytes.CutPrefix(line, []byte(unreadLine+": ")); said {
		detail = "the request cannot be read: " + string(why)
	}
	body, err := encode(refuse(CodeMalformed, detail).problem())
	if err != nil { // texts always have JSON
		return c.Conn.Write(b)
	}
	answer := fmt.Sprintf("%s\r\nContent-Type: %s\r\nContent-Length: %d\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n%s",
		unreadLine, problemType, len(body), body)
	if _, err := c.Conn.Write([]byte(answer)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// CloseWrite ends what the server says. http.Server does so before it closes a
// connection, so that the client gets the last answer.
func (c *conn) CloseWrite() error {
	if half, is := c.Conn.(interface{ CloseWrite() error }); is {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}
