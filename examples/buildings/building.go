package main

import (
	"context"

	"github.com/twinsrv/twinsrv/entity"
)

// Building is the state of an entity of the pod buildings: what is known of it
// from a file, the weather around it, and what its floors come to.
type Building struct {
	Use          string  `json:"use"`
	SquareMeters float64 `json:"squareMeters"`
	TimeZone     string  `json:"timeZone"`
	YearBuilt    string  `json:"yearBuilt"` // a year, or words such as "pre 1919"
	WeatherFile  string  `json:"weatherFile"`

	OutdoorCelsius *float64 `json:"outdoorCelsius"` // null until there was a reading
	OutdoorAt      string   `json:"outdoorAt"`      // of that reading, in local time
	Readings       int      `json:"readings"`       // of the weather file, also those without a temperature

	Total  Summary            `json:"total"`
	Floors map[string]Summary `json:"floors"`
}

// Describe is the message "describe": what a file of buildings says of one.
type Describe struct {
	Use          string  `json:"use"`
	SquareMeters float64 `json:"squareMeters"`
	TimeZone     string  `json:"timeZone"`
	YearBuilt    string  `json:"yearBuilt"`
	WeatherFile  string  `json:"weatherFile"`
}

// Outdoor is the message "outdoor": one reading of a building's weather file.
type Outdoor struct {
	// Number is the reading's place in the file, from 1. A reading that the
	// building has had already is acknowledged and changes nothing, so that a
	// feed can be repeated; one that leaves others out is rejected. 0 stands for
	// the next one.
	Number int `json:"number"`
	// At is when it was read, in local time.
	At string `json:"at"`
	// Celsius is null when the file has no temperature there; the building
	// keeps its last one.
	Celsius *float64 `json:"celsius"`
}

// FloorChanged is the message "floor": all that a floor adds to its building
// now.
type FloorChanged struct {
	Floor string  `json:"floor"`
	Now   Summary `json:"now"`
}

// Buildings is the pod buildings.
var Buildings = entity.Type[Building]{
	Name: "buildings",
	Init: func(context.Context, string) (Building, error) {
		return Building{Floors: map[string]Summary{}}, nil
	},
	Handlers: entity.Handlers[Building]{
		"describe": entity.On(func(_ *entity.Context, b *Building, m Describe) error {
			if m.WeatherFile != b.WeatherFile {
				b.Readings = 0
			}
			b.Use, b.SquareMeters, b.TimeZone = m.Use, m.SquareMeters, m.TimeZone
			b.YearBuilt, b.WeatherFile = m.YearBuilt, m.WeatherFile
			return nil
		}),
		"outdoor": entity.On(func(_ *entity.Context, b *Building, m Outdoor) error { return b.outdoor(m) }),
		"floor": entity.On(func(c *entity.Context, b *Building, m FloorChanged) error {
			if partOf(m.Floor) != c.Name() {
				return entity.Rejectf("floor %q is not in this building", m.Floor)
			}
			b.Total = replace(b.Total, b.Floors, m.Floor, m.Now)
			return nil
		}),
		"summary": entity.Query(func(_ *entity.Context, b *Building, _ Summarise) (Summary, error) {
			return b.Total, nil
		}),
	},
}

func (b *Building) outdoor(m Outdoor) error {
	switch {
	case m.Number < 0:
		return entity.Rejectf("a reading's number is at least 1")
	case m.Number > 0 && m.Number <= b.Readings:
		return nil
	case m.Number > b.Readings+1:
		return entity.Rejectf("reading %d came while reading %d is the next", m.Number, b.Readings+1)
	}
	b.Readings++
	if m.Celsius != nil {
		b.OutdoorCelsius, b.OutdoorAt = m.Celsius, m.At
	}
	return nil
}
