package main

import (
	"context"
	"math"
	"time"

	"github.com/twinsrv/twinsrv/entity"
)

// A room outside these temperatures, in °C, raises an alarm.
const (
	tooCold = 16
	tooHot  = 28
)

// Room is the state of an entity of the pod rooms.
type Room struct {
	Floor     string   `json:"floor"`
	Celsius   *float64 `json:"celsius"` // null until it was measured
	Occupants int      `json:"occupants"`
	Alarm     bool     `json:"alarm"`
}

// Measured is the message "measured": a room's temperature in °C.
type Measured struct {
	Celsius float64 `json:"celsius"`
}

// Enter is the message "enter": people go into a room, or out of it when the
// number is negative. The answer is how many are in the room then.
type Enter struct {
	People int `json:"people"`
}

// Report is the message "report": a room or floor tells the part above it once
// more what it comes to.
type Report struct{}

// Close is the message "close": the room counts no more, until it is measured
// or entered again. A room that is to be deleted is closed first.
type Close struct{}

// Rooms is the pod rooms. Whatever changes a room is followed by a message to
// its floor.
//
// That message is sent with SendOnce: it becomes durable with the change, and
// the floor takes each one once and in order, whatever crashes. So floors and
// buildings come to exactly what their rooms do, once nothing is on its way any
// more. It holds everything that the room adds to its floor and not what
// changed, so that a floor which was deleted is right again when its rooms
// report.
var Rooms = entity.Type[Room]{
	Name: "rooms",
	Init: func(_ context.Context, name string) (Room, error) { return Room{Floor: partOf(name)}, nil },
	Handlers: entity.Handlers[Room]{
		"measured": entity.On(func(c *entity.Context, r *Room, m Measured) error {
			if m.Celsius < -100 || m.Celsius > 200 {
				return entity.Rejectf("%g °C is no temperature of a room", m.Celsius)
			}
			r.Celsius = &m.Celsius
			r.Alarm = m.Celsius < tooCold || m.Celsius > tooHot
			r.tellFloor(c)
			return nil
		}),
		"enter": entity.Reply(func(c *entity.Context, r *Room, m Enter) (int, error) {
			switch {
			case m.People > 0 && r.Occupants > math.MaxInt32-m.People:
				return 0, entity.Rejectf("no room holds that many people")
			case m.People < -r.Occupants:
				return 0, entity.Rejectf("there are only %d people in the room", r.Occupants)
			}
			r.Occupants += m.People
			r.tellFloor(c)
			return r.Occupants, nil
		}),
		"report": entity.On(func(c *entity.Context, r *Room, _ Report) error {
			r.tellFloor(c)
			return nil
		}),
		"close": entity.On(func(c *entity.Context, r *Room, _ Close) error {
			*r = Room{Floor: r.Floor}
			c.SendOnce("floors", r.Floor, RoomChanged{Room: c.Name()})
			return nil
		}),
		"summary": entity.Query(func(_ *entity.Context, r *Room, _ Summarise) (Summary, error) {
			return r.summary(), nil
		}),
	},
	Create: entity.Creation{By: []string{"measured", "enter"}, Names: roomNames},
	// A simulated day that was interrupted may go on as late as this, see
	// simulateDay. It sends a room fewer messages than are remembered.
	Repeats: entity.Window{Count: 4 * stepsPerDay, For: 30 * 24 * time.Hour},
}

func (r *Room) tellFloor(c *entity.Context) {
	c.SendOnce("floors", r.Floor, RoomChanged{Room: c.Name(), Now: r.summary()})
}

func (r *Room) summary() Summary {
	s := Summary{Rooms: 1, Occupants: r.Occupants}
	if r.Alarm {
		s.Alarms = 1
	}
	if r.Celsius != nil {
		return s.measured(*r.Celsius)
	}
	return s
}
