package main

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// noReading stands in weather files where a number is missing.
const noReading = -9999

// readWeather reads a weather file of the Building Data Genome Project: the
// readings of one place in the order of their time, with missing ones as
// Outdoors without a temperature. The column timestamp stands in these files
// twice, with the same times; it is the first that counts.
func readWeather(name string, r io.Reader) ([]Outdoor, error) {
	t, err := newTable(name, r)
	if err != nil {
		return nil, err
	}
	at, err := t.columns("timestamp", "TemperatureC")
	if err != nil {
		return nil, err
	}
	var out []Outdoor
	err = t.each(func(row []string) error {
		o := Outdoor{Number: len(out) + 1, At: row[at[0]]}
		if _, err := time.Parse(time.DateTime, o.At); err != nil {
			return fmt.Errorf("column timestamp: %q is not a time such as 2015-01-01 00:51:00", o.At)
		}
		if len(out) > 0 && o.At < out[len(out)-1].At {
			return errors.New("column timestamp: it is earlier than the line before")
		}
		if o.Celsius, err = temperature(row[at[1]]); err != nil {
			return fmt.Errorf("column TemperatureC: %w", err)
		}
		out = append(out, o)
		return nil
	})
	return out, err
}

// temperature reads a cell; nil means that there is no reading in it.
func temperature(cell string) (*float64, error) {
	if cell == "" || cell == "-" {
		return nil, nil
	}
	f, err := number(cell)
	if err != nil || f == noReading {
		return nil, err
	}
	return &f, nil
}
