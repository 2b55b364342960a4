package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http/httptest"
	"strings"
	"time"
)

const (
	eventually = time.Minute
	tick       = 5 * time.Millisecond
)

// sorted is a JSON object with its keys in order.
func sorted(text string) string {
	var v map[string]any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	out, _ := json.Marshal(v)
	return string(out)
}

func newRecorder() *httptest.ResponseRecorder { return httptest.NewRecorder() }

func body(text string) io.Reader { return strings.NewReader(text) }
