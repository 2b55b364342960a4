package main

import "strings"

// The names of rooms and floors say where they are: room tower-3-21 is on floor
// tower-3 of building tower. A building's name may hold dashes itself.
const (
	roomNames  = `.+-[0-9]+-[0-9]+`
	floorNames = `.+-[0-9]+`
)

// partOf returns the name of the floor that a room is on, or of the building
// that a floor is in: all before the last dash.
func partOf(name string) string {
	return name[:max(strings.LastIndexByte(name, '-'), 0)]
}
