package main

import (
	"maps"
	"slices"
)

// Summary is what a room, a floor or a building comes to. The zero value is
// that of a part without rooms.
type Summary struct {
	Rooms     int     `json:"rooms"`
	Measured  int     `json:"measured"`  // rooms that have a temperature
	Celsius   float64 `json:"celsius"`   // mean of those, in °C; 0 without any
	Occupants int     `json:"occupants"` // people inside
	Alarms    int     `json:"alarms"`    // rooms that are too cold or too hot
}

// Summarise asks a room, a floor or a building for its Summary. The answer
// comes after everything that was sent before it.
type Summarise struct{}

// total adds parts up. It does so in the order of their names, since the sum of
// floating-point numbers depends on the order.
func total(parts map[string]Summary) Summary {
	var t Summary
	sum := 0.0
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		p := parts[name]
		t.Rooms += p.Rooms
		t.Measured += p.Measured
		t.Occupants += p.Occupants
		t.Alarms += p.Alarms
		sum += p.Celsius * float64(p.Measured)
	}
	if t.Measured > 0 {
		t.Celsius = sum / float64(t.Measured)
	}
	return t
}
