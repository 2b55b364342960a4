package main

import "math"

// Summary is what a room, a floor or a building comes to. The zero value is
// that of a part without rooms.
//
// Temperatures add up as whole numbers: a sum of floating-point numbers would
// depend on the order in which parts changed, and drift from what the parts come
// to when parts are taken out of it again.
type Summary struct {
	Rooms        int     `json:"rooms"`
	Measured     int     `json:"measured"`     // rooms that have a temperature
	MilliCelsius int64   `json:"milliCelsius"` // sum of those, in thousandths of a °C
	Celsius      float64 `json:"celsius"`      // their mean, in °C; 0 without any
	Occupants    int     `json:"occupants"`    // people inside
	Alarms       int     `json:"alarms"`       // rooms that are too cold or too hot
}

// Summarise asks a room, a floor or a building for its Summary. What a room
// told its floor just now may still be on its way.
type Summarise struct{}

// changed returns a total after one of its parts has changed.
func (s Summary) changed(was, now Summary) Summary {
	s.Rooms += now.Rooms - was.Rooms
	s.Measured += now.Measured - was.Measured
	s.MilliCelsius += now.MilliCelsius - was.MilliCelsius
	s.Occupants += now.Occupants - was.Occupants
	s.Alarms += now.Alarms - was.Alarms
	s.Celsius = 0
	if s.Measured > 0 {
		s.Celsius = float64(s.MilliCelsius) / float64(s.Measured) / 1000
	}
	return s
}

// measured returns the summary of a room with a temperature.
func (s Summary) measured(celsius float64) Summary {
	return s.changed(Summary{}, Summary{Measured: 1, MilliCelsius: int64(math.Round(celsius * 1000))})
}

// replace notes what a part comes to now, and forgets a part that has no rooms.
// It returns the parts' total after that.
func replace(total Summary, parts map[string]Summary, name string, now Summary) Summary {
	was := parts[name]
	if now.Rooms == 0 {
		delete(parts, name)
		return total.changed(was, Summary{})
	}
	parts[name] = now
	return total.changed(was, now)
}
