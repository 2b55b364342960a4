package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// feeder feeds one room over HTTP, a message after the other, and knows by the
// answers what the room is.
type feeder struct {
	room   string
	rng    *rand.Rand
	client *http.Client

	n       int
	last    *request // the last message
	open    bool     // it has no answer yet
	answer  string   // to it, if it has
	answers int

	exists bool
	counts bool // for its floor
	state  Room
}

// request is a message with what comes of it.
type request struct {
	id, message, body string
	status            int
	answer            string // "" stands for a revision
	after             Room
	counts            bool
}

func newFeeders(client *http.Client, seed uint64) (all []*feeder) {
	for i, building := range []string{"tower", "mill"} {
		for room := range 12 {
			name := fmt.Sprintf("%s-%d-%d", building, 1+room%6, 20+room)
			all = append(all, &feeder{
				room: name, client: client, rng: rand.New(rand.NewPCG(seed, uint64(1+100*i+room))), state: Room{Floor: partOf(name)},
			})
		}
	}
	return all
}

// next makes up a message.
func (f *feeder) next() *request {
	f.n++
	r := &request{id: fmt.Sprint("feed-", f.n), status: http.StatusOK, after: f.state, counts: true}
	switch n := f.rng.IntN(10); {
	case n < 4:
		c := float64(f.rng.IntN(300)) / 10
		r.message, r.body = "measured", fmt.Sprintf(`{"celsius":%g}`, c)
		r.after.Celsius, r.after.Alarm = &c, c < tooCold || c > tooHot
	case n == 8 && f.exists:
		r.message, r.body = "enter", `{"people":-1000}`
		r.status, r.counts = http.StatusUnprocessableEntity, f.counts
	case n == 9 && f.exists:
		r.message, r.body = "close", `{}`
		r.after, r.counts = Room{Floor: f.state.Floor}, false
	default:
		people := f.rng.IntN(7) - min(3, f.state.Occupants)
		r.message, r.body = "enter", fmt.Sprintf(`{"people":%d}`, people)
		r.after.Occupants += people
		r.answer = fmt.Sprint(r.after.Occupants)
	}
	return r
}

// run feeds until there is no answer. It pauses: what a message leads to is lost
// unseen if the next one is on its way already when the example is killed.
func (f *feeder) run(url string) error {
	for {
		<-time.After(time.Duration(f.rng.IntN(12_000)) * time.Microsecond)
		if !f.open && (f.last == nil || f.rng.IntN(8) > 0) { // else the last message is repeated
			f.last, f.open = f.next(), true
		}
		if answered, err := f.send(url); err != nil || !answered {
			return err
		}
	}
}

// finish sends the message that has no answer.
func (f *feeder) finish(url string) error {
	for begin := time.Now(); f.open; {
		if _, err := f.send(url); err != nil {
			return err
		}
		if time.Since(begin) > 20*time.Second {
			return fmt.Errorf("%s: %s is not answered", f.room, f.last.id)
		}
	}
	return nil
}

// send sends the last message, perhaps once more.
func (f *feeder) send(url string) (answered bool, err error) {
	r := f.last
	req, err := http.NewRequest(http.MethodPost, url+"/v1/pods/rooms/entities/"+f.room+"/messages/"+r.message, bytes.NewReader([]byte(r.body)))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", r.id)
	res, err := f.client.Do(req)
	if err != nil {
		return false, nil
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return false, nil
	}
	answer := string(bytes.TrimSpace(body))
	switch {
	case res.StatusCode == http.StatusServiceUnavailable || res.StatusCode == http.StatusTooManyRequests:
		return true, nil // it is sent again
	case res.StatusCode != r.status || r.answer != "" && answer != r.answer:
		return true, fmt.Errorf("%s: %+v was answered with %s %s", f.room, *r, res.Status, answer)
	case !f.open && answer != f.answer:
		return true, fmt.Errorf("%s: %+v was answered with %s, and at first with %s", f.room, *r, answer, f.answer)
	case f.open:
		f.answers++
		f.open, f.answer, f.exists, f.counts, f.state = false, answer, true, r.counts, r.after
	}
	return true, nil
}

// fold adds the room to what floors and buildings come to.
func (f *feeder) fold(rooms map[string]Room, floors map[string]Floor, buildings map[string]Building) {
	if !f.exists {
		return
	}
	rooms[f.room] = f.state
	name := f.state.Floor
	floor := floors[name]
	if floor.Rooms == nil {
		floor = Floor{Building: partOf(name), Rooms: map[string]Summary{}}
	}
	building := buildings[floor.Building]
	if building.Floors == nil {
		building.Floors = map[string]Summary{}
	}
	if f.counts {
		floor.Rooms[f.room] = f.state.summary()
		floor.Total = floor.Total.changed(Summary{}, f.state.summary())
		building.Floors[name] = floor.Total
		building.Total = building.Total.changed(Summary{}, f.state.summary())
	}
	floors[name], buildings[floor.Building] = floor, building
}

// list reads the states of a pod's entities by their names.
func list[S any](t *testing.T, f *feeder, url, pod string) map[string]S {
	t.Helper()
	res, err := f.client.Get(url + "/v1/pods/" + pod + "/entities?limit=1000")
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)
	var page struct {
		Items []struct {
			Name  string `json:"name"`
			State S      `json:"state"`
		} `json:"items"`
	}
	require.NoError(t, json.NewDecoder(res.Body).Decode(&page))
	all := map[string]S{}
	for _, i := range page.Items {
		all[i.Name] = i.State
	}
	return all
}

// addStates adds the states of a pod's entities by pod and name.
func addStates[S any](t *testing.T, all map[string]any, h *pod.Handle[S]) {
	t.Helper()
	views, next, err := h.List(t.Context(), persist.ListOptions{Limit: 1000})
	require.NoError(t, err)
	require.Empty(t, next)
	for _, v := range views {
		all[h.Name()+"/"+v.Name] = v.State
	}
}
