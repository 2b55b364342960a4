package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWeatherOfTheSample(t *testing.T) {
	f, err := sampleFiles()
	require.NoError(t, err)
	require.Len(t, f.readings, 48)
	var missing []int
	for i, o := range f.readings {
		require.Equal(t, i+1, o.Number)
		if o.Celsius == nil {
			missing = append(missing, i)
		}
	}
	// "-", -9999.0, "-", -9999, nothing, -9999.0
	require.Equal(t, []int{7, 8, 30, 31, 32, 47}, missing)
	require.Equal(t, "2024-05-31 23:50:00", f.readings[47].At)
	require.InDelta(t, 13.9, *f.readings[46].Celsius, 0)
}

func TestWeatherTakesTheFirstOfTwoColumns(t *testing.T) {
	got, err := readWeather("w.csv", strings.NewReader("timestamp,TemperatureC,timestamp\n2015-01-01 00:51:00,-0.0,2016-01-01 00:51:00\n"))
	require.NoError(t, err)
	require.Equal(t, "2015-01-01 00:51:00", got[0].At)
	require.Zero(t, *got[0].Celsius)
}

func TestWeatherFaultsNameTheLine(t *testing.T) {
	const header = "timestamp,TemperatureC\n"
	for name, c := range map[string]struct{ text, want string }{
		"no temperatures": {"timestamp,Celsius\n", `w.csv: the first line does not name a column "TemperatureC"`},
		"no time":         {header + "yesterday,2\n", `w.csv: line 2: column timestamp: "yesterday" is not a time`},
		"time runs back":  {header + "2015-01-02 00:00:00,2\n2015-01-01 00:00:00,2\n", "w.csv: line 3: column timestamp: it is earlier"},
		"no number":       {header + "2015-01-02 00:00:00,warm\n", `w.csv: line 2: column TemperatureC: "warm" is not a number`},
		"not a number":    {header + "2015-01-02 00:00:00,NaN\n", `w.csv: line 2: column TemperatureC: "NaN" is out of range`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readWeather("w.csv", strings.NewReader(c.text))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestWeatherOfTheRealFile(t *testing.T) {
	f := readRealFiles(t)
	require.Len(t, f.readings, 8999)
	missing := 0
	for _, o := range f.readings {
		if o.Celsius == nil {
			missing++
			continue
		}
		require.Greater(t, *o.Celsius, -60.0)
		require.Less(t, *o.Celsius, 60.0)
	}
	require.Equal(t, 9, missing)
	last := f.readings[8998]
	require.Equal(t, "2015-12-31 23:51:00", last.At)
	require.InDelta(t, 7.2, *last.Celsius, 0)
}
