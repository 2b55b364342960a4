package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/pod"
)

// The simulated building.
const (
	simulated      = "tower"
	floorCount     = 3
	roomsOnFloor   = 8
	firstRoom      = 20
	minutesPerStep = 15
	stepsPerDay    = 24 * 60 / minutesPerStep
)

// simulation is a day in a building whose rooms warm up, cool down, fill and
// empty. It is the same each time, and its messages have the same ids: a room
// that had one already answers it again and does nothing, so that a day which
// was interrupted can be sent once more.
type simulation struct {
	rooms    []*simulatedRoom
	readings []Outdoor
	dice     *rand.Rand
}

type simulatedRoom struct {
	ref     entity.Ref
	celsius float64
	people  int
	seats   int
	open    bool // one room's window does not close
	late    bool // in some rooms people work through the night
}

// newSimulation takes the weather outside from readings.
func newSimulation(rooms *pod.Handle[Room], readings []Outdoor) *simulation {
	s := &simulation{readings: readings, dice: rand.New(rand.NewPCG(3, 21))}
	for floor := 1; floor <= floorCount; floor++ {
		for i := range roomsOnFloor {
			s.rooms = append(s.rooms, &simulatedRoom{
				ref:     rooms.Ref(fmt.Sprintf("%s-%d-%d", simulated, floor, firstRoom+i)),
				celsius: 19 + 2*s.dice.Float64(),
				seats:   2 + s.dice.IntN(5),
				open:    floor == 2 && i == 3,
				late:    i == 1,
			})
		}
	}
	return s
}

// run sends the day: step by step, the rooms of a step at once.
func (s *simulation) run(ctx context.Context) tally {
	f := new(feed)
	var t tally
	begin := time.Now()
	for step := 0; step <= stepsPerDay && t.err() == nil && ctx.Err() == nil; step++ {
		queues := make([]queue, len(s.rooms))
		for i, r := range s.rooms {
			messages := s.step(r, float64(step*minutesPerStep)/60)
			queues[i] = queue{to: r.ref, size: len(messages), at: func(i int) any {
				return entity.WithID(fmt.Sprintf("day-%d-%d", step, i), messages[i])
			}}
		}
		t = f.run(ctx, queues, func(int) {})
	}
	t.Took = time.Since(begin)
	return t
}

// step moves a room on to an hour of the day and returns what it says.
func (s *simulation) step(r *simulatedRoom, hour float64) []any {
	aim, pace := 21+float64(r.people)*0.3, 0.05
	if r.open {
		aim, pace = s.outside(hour), 0.25
	}
	r.celsius += (aim-r.celsius)*pace + s.dice.NormFloat64()*0.05
	messages := []any{Measured{Celsius: math.Round(r.celsius*10) / 10}}
	if d := s.people(r, hour) - r.people; d != 0 {
		r.people += d
		messages = append(messages, Enter{People: d})
	}
	return messages
}

// people says how many are in a room at an hour.
func (s *simulation) people(r *simulatedRoom, hour float64) int {
	share := 0.0
	switch {
	case hour >= 12 && hour < 13:
		share = 0.4
	case hour >= 8 && hour < 17.5:
		share = 0.9
	}
	n := 0
	for range r.seats {
		if s.dice.Float64() < share {
			n++
		}
	}
	if r.late {
		n = max(n, 1)
	}
	return n
}

// outside is the last temperature that the weather file has at an hour.
func (s *simulation) outside(hour float64) float64 {
	now := 10.0
	for i, o := range s.readings {
		if o.Celsius != nil && 24*float64(i)/float64(len(s.readings)) <= hour {
			now = *o.Celsius
		}
	}
	return now
}

// settleTime bounds the wait for what rooms told their floors, and floors their
// building. It takes a moment.
const settleTime = time.Minute

// settle waits until the building comes to what its rooms do.
func (s *simulation) settle(ctx context.Context, h pods) (Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		want := Summary{}
		for _, r := range s.rooms {
			room, err := entity.Ask[Summary](ctx, r.ref, Summarise{})
			if err != nil {
				return Summary{}, err
			}
			want = want.changed(Summary{}, room)
		}
		got, err := entity.Ask[Summary](ctx, h.buildings.Ref(simulated), Summarise{})
		if err != nil || got == want {
			return got, err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return Summary{}, fmt.Errorf("building %s comes to %+v and its rooms to %+v: %w", simulated, got, want, ctx.Err())
		}
	}
}

// simulateDay brings the sample's buildings and weather, and a day in the rooms
// of one of them, into pods that have no entities, or goes on with a day that
// was interrupted. Other pods stay as they are.
func simulateDay(ctx context.Context, out io.Writer, h pods) error {
	f, err := sampleFiles()
	if err != nil {
		return err
	}
	empty, err := h.empty(ctx)
	if err != nil {
		return err
	}
	unfinished, err := h.unfinished(ctx, f)
	if err != nil {
		return err
	}
	if !empty && !unfinished {
		_, _ = fmt.Fprintln(out, "there are buildings already, so nothing is simulated")
		return nil
	}
	// The simulated building comes first and its weather last: in between the day
	// is unfinished.
	if t := describe(ctx, h.buildings, only(f.buildings, simulated)); t.err() != nil {
		return fmt.Errorf("describe the building %s: %w", simulated, t.err())
	}
	s := newSimulation(h.rooms, f.readings)
	t := s.run(ctx)
	_, _ = fmt.Fprintf(out, "a day in the %d rooms of %s: %s\n", len(s.rooms), simulated, t)
	if err := t.err(); err != nil {
		return fmt.Errorf("simulate a day: %w", err)
	}
	if ctx.Err() != nil {
		return nil
	}
	sum, err := s.settle(ctx, h)
	if err != nil {
		return fmt.Errorf("wait for the end of the simulated day: %w", err)
	}
	_, _ = fmt.Fprintf(out, "at its end: %d rooms, %.1f °C, %d people, %d alarms\n", sum.Rooms, sum.Celsius, sum.Occupants, sum.Alarms)
	return feedFiles(ctx, out, h.buildings, f, quiet)
}

// only returns the building of a name.
func only(list []described, name string) []described {
	return slices.DeleteFunc(slices.Clone(list), func(d described) bool { return d.name != name })
}

// unfinished reports whether a simulated day was interrupted: its building is
// there, and it or another one of the file has not got all its weather. One that
// is not there was described before any weather came, and deleted since.
func (h pods) unfinished(ctx context.Context, f files) (bool, error) {
	_, err := h.buildings.Get(ctx, simulated)
	if errors.Is(err, entity.ErrNotFound) {
		return false, nil
	}
	for _, d := range f.buildings {
		v, err := h.buildings.Get(ctx, d.name)
		switch {
		case errors.Is(err, entity.ErrNotFound):
		case err != nil:
			return false, err
		case v.State.WeatherFile == f.weather && v.State.Readings < len(f.readings):
			return true, nil
		}
	}
	return false, err
}
