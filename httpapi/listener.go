package httpapi

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strconv"
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
	unreadVersion = "HTTP/1.1 "
	unreadHeaders = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
)

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	answer := unreadAnswer(b)
	if answer == nil {
		return c.Conn.Write(b)
	}
	if _, err := c.Conn.Write(answer); err != nil {
		return 0, err
	}
	return len(b), nil
}

// unreadAnswer is an answer of the server's own with the body of a Problem, or nil
// for anything else. Its status stays.
func unreadAnswer(b []byte) []byte {
	rest, ours := bytes.CutPrefix(b, []byte(unreadVersion))
	end := bytes.IndexByte(rest, '\r')
	if !ours || end < 3 || !bytes.HasPrefix(rest[end:], []byte(unreadHeaders)) {
		return nil
	}
	status, err := strconv.Atoi(string(rest[:3]))
	if err != nil || status < http.StatusBadRequest {
		return nil
	}
	p := refuse(CodeMalformed, "the request cannot be read: ").problem()
	p.Title, p.Status = http.StatusText(status), status
	_, why, said := bytes.Cut(rest[:end], []byte(": "))
	switch {
	case said:
		p.Detail += string(why)
	case status == http.StatusBadRequest:
		p.Detail += "the path and the query must be percent-encoded, and the headers must be of HTTP"
	case status == http.StatusRequestHeaderFieldsTooLarge:
		p.Detail += "its first line and its headers are too long; a long query can stand in a body"
	default:
		p.Detail += string(rest[end+len(unreadHeaders):])
	}
	body, err := encode(p)
	if err != nil { // texts always have JSON
		return nil
	}
	return fmt.Appendf(nil, "%s%d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n%s",
		unreadVersion, status, p.Title, problemType, len(body), body)
}

// CloseWrite ends what the server says. http.Server does so before it closes a
// connection, so that the client gets the last answer.
func (c *conn) CloseWrite() error {
	if half, is := c.Conn.(interface{ CloseWrite() error }); is {
		return half.CloseWrite()
	}
	return http.ErrNotSupported
}
