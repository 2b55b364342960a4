package guide

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dots stands in the guide for what differs from one run to the next.
const dots = "…"

// likeText compares a text with one that the guide shows, in which dots stand for
// any part of a line, and a line of dots alone for any lines. What is shown of a
// stream is its beginning.
func likeText(shown, got string, stream bool) error {
	pattern := "^"
	for line := range strings.Lines(strings.TrimRight(shown, "\n") + "\n") {
		if strings.TrimSpace(line) == dots {
			pattern += `(?:.*\n)*`
			continue
		}
		pattern += strings.ReplaceAll(regexp.QuoteMeta(line), dots, ".*")
	}
	got = strings.ReplaceAll(got, "\r\n", "\n")
	if !stream {
		got = strings.TrimRight(got, "\n") + "\n"
		pattern += "$"
	}
	if !regexp.MustCompile(pattern).MatchString(got) {
		return fmt.Errorf("it shows\n%s\nand the answer is\n%s", shown, got)
	}
	return nil
}

// likeJSON compares JSON values, one or several, with those that the guide shows.
// In these a text of dots stands for any value, dots within a text for any part
// of a text or number, and a member "…" for any other members.
func likeJSON(shown, got string) error {
	want, err := values(shown)
	if err != nil {
		return fmt.Errorf("what it shows is no JSON: %w\n%s", err, shown)
	}
	have, err := values(got)
	if err != nil {
		return fmt.Errorf("the answer is no JSON: %w\n%s", err, got)
	}
	if !like(want, have) {
		return fmt.Errorf("it shows\n%s\nand the answer is\n%s", shown, got)
	}
	return nil
}

func values(text string) (all []any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	for {
		var v any
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
}

func like(want, got any) bool {
	switch want := want.(type) {
	case string:
		text, is := got.(string)
		if n, number := got.(float64); number && strings.Contains(want, dots) {
			text, is = strconv.FormatFloat(n, 'f', -1, 64), true
		}
		return want == dots || is && likeText(want, text, false) == nil
	case []any:
		list, is := got.([]any)
		if !is || len(list) != len(want) {
			return false
		}
		for i := range want {
			if !like(want[i], list[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		object, is := got.(map[string]any)
		_, others := want[dots]
		if !is || !others && len(object) != len(want) {
			return false
		}
		for name, v := range want {
			if x, there := object[name]; name != dots && (!there || !like(v, x)) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(want, got)
}

func TestWhatIsLikeWhatTheGuideShows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shown, got string
		is         bool
	}{
		{`{"a": 1}`, `{"a":1}`, true},
		{`{"a": 1}`, `{"a":2}`, false},
		{`{"a": 1}`, `{"a":1,"b":2}`, false},
		{`{"a": 1, "b": 2}`, `{"a":1}`, false},
		{`{"a": 1, "…": "…"}`, `{"a":1,"b":2}`, true},
		{`{"a": 1, "…": "…"}`, `{"b":2}`, false},
		{`{"a": "…"}`, `{"a":[1,2]}`, true},
		{`{"a": "…"}`, `{"b":1}`, false},
		{`{"a": "x … z"}`, `{"a":"x y z"}`, true},
		{`{"a": "x … z"}`, `{"a":"x y"}`, false},
		{`{"a": "x"}`, `{"a":"xy"}`, false},
		{`{"a": "1…"}`, `{"a":1024}`, true},
		{`{"a": "1…"}`, `{"a":2048}`, false},
		{`{"a": "1"}`, `{"a":1}`, false},
		{`[1, 2]`, `[1]`, false},
		{"1\n2", "1 2", true},
		{"1\n2", "1", false},
		{"1", "1 2", false},
		{`{"a": `, `{"a":1}`, false},
		{`1`, ``, false},
	} {
		err := likeJSON(c.shown, c.got)
		require.Equal(t, c.is, err == nil, "%s and %s: %v", c.shown, c.got, err)
	}
	for _, c := range []struct {
		shown, got string
		stream, is bool
	}{
		{"a\nb\n", "a\r\nb\r\n\r\n", false, true},
		{"a\n", "a\nb\n", false, false},
		{"a\n", "a\nb\n", true, true},
		{"b\n", "a\nb\n", true, false},
		{"a\n", "ab\n", true, false},
		{"a … c\n", "a b c\n", false, true},
		{"a … c\n", "a b\n", false, false},
		{"a\n…\nd\n", "a\nb\nc\nd\n", false, true},
		{"a\n…\nd\n", "a\nb\n", false, false},
	} {
		err := likeText(c.shown, c.got, c.stream)
		require.Equal(t, c.is, err == nil, "%q and %q: %v", c.shown, c.got, err)
	}
}
