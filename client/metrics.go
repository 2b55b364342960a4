package client

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Figure is one of a server's metrics at one moment. Of a histogram each bucket,
// the sum and the count are figures of their own.
type Figure struct {
	Name   string
	Labels map[string]string // nil if it has none
	Value  float64
}

// Metrics reads the server's figures, such as twinsrv_asks_total, in the order in
// which it tells them.
func (c *Client) Metrics(ctx context.Context) ([]Figure, error) {
	a, err := c.do(ctx, request{method: http.MethodGet, path: "/metrics", repeats: always})
	if err != nil {
		return nil, err
	}
	var all []Figure
	for line := range strings.Lines(string(a.body)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		f, err := parseFigure(line)
		if err != nil {
			return nil, fmt.Errorf("the line %q of the metrics: %w", line, err)
		}
		all = append(all, f)
	}
	return all, nil
}

// parseFigure reads a line of the text format of Prometheus, whose time is passed
// over.
func parseFigure(line string) (f Figure, err error) {
	end := strings.IndexAny(line, "{ \t")
	if end <= 0 {
		return f, fmt.Errorf("it has no name and value")
	}
	f.Name, line = line[:end], line[end:]
	if line[0] == '{' {
		if f.Labels, line, err = parseLabels(line[1:]); err != nil {
			return f, err
		}
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return f, fmt.Errorf("it has no value")
	}
	f.Value, err = strconv.ParseFloat(words[0], 64)
	return f, err
}

// parseLabels reads name="value",… up to its }, and returns the rest.
func parseLabels(s string) (labels map[string]string, rest string, err error) {
	labels = make(map[string]string)
	for {
		s = strings.TrimLeft(s, ", ")
		if after, closed := strings.CutPrefix(s, "}"); closed {
			return labels, after, nil
		}
		name, quoted, found := strings.Cut(s, "=")
		if !found || !strings.HasPrefix(quoted, `"`) {
			return nil, "", fmt.Errorf("a label has no value in quotes")
		}
		value, n, err := unquoteLabel(quoted)
		if err != nil {
			return nil, "", err
		}
		labels[strings.TrimSpace(name)] = value
		s = quoted[n:]
	}
}

// unquoteLabel returns the value of a label and how long it is with its quotes.
func unquoteLabel(s string) (value string, n int, err error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), i + 1, nil
		case c == '\\' && i+1 < len(s):
			i++
			if s[i] == 'n' {
				b.WriteByte('\n')
			} else {
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", 0, fmt.Errorf("the value of a label does not end")
}
