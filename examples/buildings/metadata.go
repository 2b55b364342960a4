package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/twinsrv/twinsrv/entity"
)

// described is a building as a file of buildings has it.
type described struct {
	name string
	Describe
}

// readMetadata reads a file of buildings in the form of the Building Data
// Genome Project: a line each, named by the column uid. The name is that of the
// file, for errors.
func readMetadata(name string, r io.Reader) ([]described, error) {
	t, err := newTable(name, r)
	if err != nil {
		return nil, err
	}
	at, err := t.columns("uid", "primaryspaceusage", "sqm", "timezone", "yearbuilt", "newweatherfilename")
	if err != nil {
		return nil, err
	}
	var out []described
	seen := map[string]bool{}
	err = t.each(func(row []string) error {
		d := described{name: row[at[0]], Describe: Describe{
			Use: row[at[1]], TimeZone: row[at[3]], YearBuilt: row[at[4]], WeatherFile: row[at[5]],
		}}
		if err := entity.CheckName(d.name); err != nil {
			return fmt.Errorf("column uid: %w", err)
		}
		if seen[d.name] {
			return fmt.Errorf("building %q stands in the file twice", d.name)
		}
		seen[d.name] = true
		if area := row[at[2]]; area != "" {
			if d.SquareMeters, err = number(area); err != nil {
				return fmt.Errorf("column sqm: %w", err)
			}
		}
		out = append(out, d)
		return nil
	})
	return out, err
}

// number reads a finite number.
func number(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return 0, fmt.Errorf("%q is not a number", text)
	case err != nil || math.IsInf(f, 0) || math.IsNaN(f):
		return 0, fmt.Errorf("%q is out of range", text)
	}
	return f, nil
}
