package killtest

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
)

// writer changes one entity, one request after the other, and remembers what
// the server said. Only its own goroutine and, after that has ended, the test
// use it.
type writer struct {
	name    string
	rng     *rand.Rand
	client  *http.Client
	counter int

	exists bool // as acknowledged
	value  int  // of both fields, as acknowledged
	// maybe is what a request that got no answer would have made of it; nil if
	// every request was answered.
	maybe *state
	acks  int
}

// state is an entity's: absent, or with both fields at one value.
type state struct {
	exists bool
	value  int
}

// run writes until a request fails, which the server's end makes happen.
func (w *writer) run(p *process) error {
	w.maybe = nil
	for {
		next := state{exists: true, value: w.counter + 1}
		w.counter++
		var err error
		switch {
		case w.exists && w.rng.IntN(20) == 0:
			next = state{}
			err = w.send(http.MethodDelete, p.entity(w.name), "", next)
		case w.rng.IntN(2) == 0:
			err = w.send(http.MethodPost, p.entity(w.name)+"/messages/merge", fmt.Sprintf(`{"a":%d,"b":%d}`, next.value, next.value), next)
		default:
			err = w.send(http.MethodPut, p.entity(w.name)+"/state", fmt.Sprintf(`{"a":%d,"b":%d}`, next.value, next.value), next)
		}
		if err != nil || w.maybe != nil {
			return err
		}
	}
}

// send makes one request. A missing answer is noted and is no error; an answer
// that says no is.
func (w *writer) send(method, url, body string, next state) error {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := w.client.Do(req)
	if err != nil {
		w.maybe = &next
		return nil
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		w.maybe = &next
		return nil
	}
	if res.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, url, res.Status, answer)
	}
	w.exists, w.value = next.exists, next.value
	w.acks++
	return nil
}

// check reads the entity back and says what is wrong with it.
func (w *writer) check(p *process) error {
	res, err := w.client.Get(p.entity(w.name) + "/state")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var got state
	switch res.StatusCode {
	case http.StatusNotFound:
	case http.StatusOK:
		var fields struct{ A, B int }
		if err := json.NewDecoder(res.Body).Decode(&fields); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if fields.A != fields.B {
			return fmt.Errorf("%s: half of a message is there: %+v", w.name, fields)
		}
		got = state{exists: true, value: fields.A}
	default:
		return fmt.Errorf("%s: %s", w.name, res.Status)
	}
	acked := state{exists: w.exists, value: w.value}
	if !acked.exists {
		acked.value = 0
	}
	if got != acked && (w.maybe == nil || got != *w.maybe) {
		return fmt.Errorf("%s: acknowledged %+v, possible %+v, found %+v", w.name, acked, w.maybe, got)
	}
	w.exists, w.value = got.exists, got.value
	return nil
}
