package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestMetadataOfTheSample(t *testing.T) {
	f, err := sampleFiles()
	require.NoError(t, err)
	require.Equal(t, "buildings.csv", f.metadata)
	require.Equal(t, []described{
		{"tower", Describe{Use: "Office", SquareMeters: 1800, TimeZone: "Europe/Zurich", YearBuilt: "1998", WeatherFile: "weather.csv"}},
		{"mill", Describe{Use: "Office", SquareMeters: 650.05, TimeZone: "Europe/Zurich", YearBuilt: "pre 1919", WeatherFile: "weather.csv"}},
		{"depot-7", Describe{Use: "Office", TimeZone: "America/Chicago", WeatherFile: "elsewhere.csv"}},
		{"Müller_Halle", Describe{Use: "Dormitory", SquareMeters: 4300, TimeZone: "Europe/Berlin", YearBuilt: "1945-1966", WeatherFile: "elsewhere.csv"}},
		{"annex", Describe{Use: "College Laboratory", SquareMeters: 300, TimeZone: "Europe/Zurich", YearBuilt: "2011"}},
	}, f.buildings)
}

const metadataHeader = "uid,primaryspaceusage,sqm,timezone,yearbuilt,newweatherfilename"

func TestMetadataFaultsNameTheLine(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":             {"", "m.csv: it is empty"},
		"a column missing":  {"uid,sqm\ra,1", `m.csv: the first line does not name a column "primaryspaceusage"`},
		"a building twice":  {metadataHeader + "\ra,,,,,\rb,,,,,\ra,,,,,", `m.csv: line 4: building "a" stands in the file twice`},
		"a name missing":    {metadataHeader + "\r\na,,,,,\r\n,Office,,,,", "m.csv: line 3: column uid: bad name"},
		"an area in words":  {metadataHeader + "\na,,big,,,", `m.csv: line 2: column sqm: "big" is not a number`},
		"an endless area":   {metadataHeader + "\na,,inf,,,", `m.csv: line 2: column sqm: "inf" is out of range`},
		"a cell missing":    {metadataHeader + "\ra,b", "m.csv: record on line 2: wrong number of fields"},
		"an open quotation": {metadataHeader + "\ra,\"b,,,,", "m.csv: parse error on line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readMetadata("m.csv", strings.NewReader(c.text))
			require.ErrorContains(t, err, c.want)
		})
	}
}

// Lines may end in any of three ways.
func TestLineEnds(t *testing.T) {
	for name, end := range map[string]string{"CR": "\r", "LF": "\n", "CR LF": "\r\n"} {
		t.Run(name, func(t *testing.T) {
			text := metadataHeader + end + "a,Office,,,," + end + "b,\"two" + end + "lines\",,,," + end
			got, err := readMetadata("m.csv", strings.NewReader(text))
			require.NoError(t, err)
			require.Len(t, got, 2)
			require.Equal(t, "Office", got[0].Use)
			require.Equal(t, "two\nlines", got[1].Use)
		})
	}
}

// A CR LF is one line end also where a read ends between the two.
func TestLineEndAcrossReads(t *testing.T) {
	got, err := io.ReadAll(iotest.OneByteReader(&newlines{r: bufio.NewReader(strings.NewReader("a\r\nb\rc\n\r\r\nd\r"))}))
	require.NoError(t, err)
	require.Equal(t, "a\r\nb\nc\n\n\r\nd\n", string(got))
}

// realFile returns the path of one of the files that the example was made for.
// They are not part of the project.
func realFile(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "..", "shared", "data", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs the real files: %v", err)
	}
	return path
}

func readRealFiles(t *testing.T) files {
	t.Helper()
	f, err := readFiles(realFile(t, "meta_open.csv"), realFile(t, "weather0.csv"))
	require.NoError(t, err)
	return f
}

func TestMetadataOfTheRealFile(t *testing.T) {
	f := readRealFiles(t)
	require.Len(t, f.buildings, 507)
	follow := 0
	for _, b := range f.buildings {
		require.NotEmpty(t, b.Use)
		require.NotEmpty(t, b.TimeZone)
		require.Positive(t, b.SquareMeters)
		if b.WeatherFile == f.weather {
			follow++
		}
	}
	require.Equal(t, 96, follow)
	require.Equal(t, described{"PrimClass_Jolie", Describe{
		Use: "Primary/Secondary Classroom", SquareMeters: 2927, TimeZone: "Europe/London", YearBuilt: "pre 1919", WeatherFile: "weather1.csv",
	}}, f.buildings[6])
}
