package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// loadVariable has this program send requests in place of measuring: its value
// is a request as JSON.
const loadVariable = "TWINSRV_BENCH_LOAD"

// requests says what a process of its own sends, as fast as it is answered.
type requests struct {
	Address  string        `json:"address"`
	Each     [][]byte      `json:"each"` // whole HTTP/1.1 requests, one for each connection
	Period   time.Duration `json:"period"`
	Expected int           `json:"expected"` // status
}

// run sends the requests from another process, and returns how many a second were
// answered.
func (r requests) run() (rate float64, err error) {
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	what, err := json.Marshal(r)
	if err != nil {
		return 0, err
	}
	c := exec.Command(program)
	c.Env = append(os.Environ(), loadVariable+"="+string(what))
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return 0, fmt.Errorf("the process that sends requests: %w", err)
	}
	return strconv.ParseFloat(string(bytes.TrimSpace(out)), 64)
}

// sendRequests is what the other process does, if this is it.
func sendRequests(out io.Writer) (is bool, err error) {
	what := os.Getenv(loadVariable)
	if what == "" {
		return false, nil
	}
	var r requests
	if err := json.Unmarshal([]byte(what), &r); err != nil {
		return true, err
	}
	conns := make([]*bufio.ReadWriter, len(r.Each))
	for i := range conns {
		c, err := net.Dial("tcp", r.Address)
		if err != nil {
			return true, err
		}
		defer func() { _ = c.Close() }()
		conns[i] = bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c))
	}
	rate, err := crowd(len(conns), r.Period, func(who, _ int) error { return exchange(conns[who], r.Each[who], r.Expected) })
	if err != nil {
		return true, err
	}
	_, err = fmt.Fprintln(out, rate)
	return true, err
}

// exchange sends a request and reads its answer, which has a Content-Length. It
// looks at no more than it must, so that the time is the server's.
func exchange(c *bufio.ReadWriter, request []byte, status int) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	if err := c.Flush(); err != nil {
		return err
	}
	length := -1
	for first := true; ; first = false {
		line, err := c.ReadSlice('\n')
		if err != nil {
			return err
		}
		switch line = bytes.TrimSpace(line); {
		case first && !bytes.HasPrefix(line, strconv.AppendInt([]byte("HTTP/1.1 "), int64(status), 10)):
			return fmt.Errorf("the server answers %q, not %d", line, status)
		case len(line) == 0 && length < 0:
			return errors.New("an answer without Content-Length")
		case len(line) == 0:
			_, err := c.Discard(length)
			return err
		case bytes.HasPrefix(bytes.ToLower(line), []byte("content-length:")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len("content-length:"):]))); err != nil {
				return err
			}
		}
	}
}

// rawRequest makes an HTTP/1.1 request.
func rawRequest(method, path, address string, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, address)
	if body != nil {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}
