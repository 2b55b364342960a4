package main

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
)

// files is what a feed brings in: buildings, and the readings of the weather
// file that some of them name.
type files struct {
	metadata  string // the files' names without folders; weather may be empty
	weather   string
	buildings []described
	readings  []Outdoor
}

// readFiles reads and checks both files before anything is sent. weather may be
// empty.
func readFiles(metadata, weather string) (files, error) {
	return parseFiles(os.ReadFile, metadata, weather)
}

//go:embed sample
var sample embed.FS

// sampleFiles is a small sample of both files: five buildings, of which two
// follow a day's weather.
func sampleFiles() (files, error) {
	return parseFiles(sample.ReadFile, "sample/buildings.csv", "sample/weather.csv")
}

func parseFiles(read func(string) ([]byte, error), metadata, weather string) (f files, err error) {
	f.metadata = filepath.Base(metadata)
	data, err := read(metadata)
	if err == nil {
		f.buildings, err = readMetadata(metadata, bytes.NewReader(data))
	}
	if err != nil {
		return files{}, fmt.Errorf("read the buildings: %w", err)
	}
	if weather == "" {
		return f, nil
	}
	f.weather = filepath.Base(weather)
	if data, err = read(weather); err == nil {
		f.readings, err = readWeather(weather, bytes.NewReader(data))
	}
	if err != nil {
		return files{}, fmt.Errorf("read the weather: %w", err)
	}
	return f, nil
}
