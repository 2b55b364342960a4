package simulated

import (
	"strings"

	"github.com/twinsrv/twinsrv/entity"
)

// Room is the state of an entity of the pod rooms. Temperatures are whole
// numbers, in tenths of a degree Celsius, so that sums are exact.
type Room struct {
	Tenths int  `json:"tenths"`
	Known  bool `json:"known"` // it has measured something
}

// Measured is the message "measured": what a room's sensor reads now.
type Measured struct {
	Tenths int `json:"tenths"`
}

// Rooms is the pod rooms. A room is named after its floor, as "f1-r2" is after
// "f1". It tells its floor by how much it differs from what it was.
var Rooms = entity.Type[Room]{
	Name: "rooms",
	Handlers: entity.Handlers[Room]{
		"measured": entity.On(func(c *entity.Context, r *Room, m Measured) error {
			c.SendOnce("floors", floorOf(c.Name()), r.measure(m))
			return nil
		}),
	},
}

// measure takes a reading and returns what that adds to the floor.
func (r *Room) measure(m Measured) RoomChanged {
	change := RoomChanged{Tenths: m.Tenths - r.Tenths}
	if !r.Known {
		change.Rooms = 1
	}
	r.Tenths, r.Known = m.Tenths, true
	return change
}

func floorOf(room string) string {
	floor, _, _ := strings.Cut(room, "-")
	return floor
}
