package main

import (
	"context"

	"github.com/twinsrv/twinsrv/entity"
)

// Floor is the state of an entity of the pod floors.
type Floor struct {
	Building string             `json:"building"`
	Total    Summary            `json:"total"`
	Rooms    map[string]Summary `json:"rooms"`
}

// RoomChanged is the message "room": all that a room adds to its floor now. A
// room whose Now has no rooms is none any more.
type RoomChanged struct {
	Room string  `json:"room"`
	Now  Summary `json:"now"`
}

// Floors is the pod floors. A floor keeps what each of its rooms adds, and
// tells its building what all of them come to whenever a room has told it
// something.
var Floors = entity.Type[Floor]{
	Name: "floors",
	Init: func(_ context.Context, name string) (Floor, error) {
		return Floor{Building: partOf(name), Rooms: map[string]Summary{}}, nil
	},
	Handlers: entity.Handlers[Floor]{
		"room": entity.On(func(c *entity.Context, f *Floor, m RoomChanged) error {
			if partOf(m.Room) != c.Name() {
				return entity.Rejectf("room %q is not on this floor", m.Room)
			}
			f.Total = replace(f.Total, f.Rooms, m.Room, m.Now)
			f.tellBuilding(c)
			return nil
		}),
		"report": entity.On(func(c *entity.Context, f *Floor, _ Report) error {
			f.tellBuilding(c)
			return nil
		}),
		"summary": entity.Query(func(_ *entity.Context, f *Floor, _ Summarise) (Summary, error) {
			return f.Total, nil
		}),
	},
	Create: entity.Creation{By: []string{"room"}, Names: floorNames},
}

func (f *Floor) tellBuilding(c *entity.Context) {
	c.SendOnce("buildings", f.Building, FloorChanged{Floor: c.Name(), Now: f.Total})
}
