package simulated

import "github.com/twinsrv/twinsrv/entity"

// Floor is the state of an entity of the pod floors: how many rooms have
// measured something, and the sum of what they measured last.
type Floor struct {
	Rooms  int `json:"rooms"`
	Tenths int `json:"tenths"`
}

// RoomChanged is the message "changed": what a room adds to its floor.
type RoomChanged struct {
	Rooms  int `json:"rooms"`
	Tenths int `json:"tenths"`
}

// Floors is the pod floors. A floor adds what its rooms tell it, so it must hear
// of each change exactly once.
var Floors = entity.Type[Floor]{
	Name: "floors",
	Handlers: entity.Handlers[Floor]{
		"changed": entity.On(func(_ *entity.Context, f *Floor, m RoomChanged) error {
			f.Rooms += m.Rooms
			f.Tenths += m.Tenths
			return nil
		}),
	},
}
