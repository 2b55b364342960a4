package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheSample(t *testing.T) {
	f, err := sampleFacts()
	require.NoError(t, err)
	require.Len(t, f.companies, 14)
	require.Equal(t, fact{"KO", "Coca-Cola Company (The)", "Consumer Staples"}, f.bySymbol["KO"])
	require.Len(t, f.sectors, 11)
	require.IsIncreasing(t, f.sectors)
}

// Spreadsheets write it so.
func TestAFileWithAMark(t *testing.T) {
	f, err := parseFacts("c.csv", []byte("\ufeffSymbol,Security,GICS Sector\r\nA,Café,X\r\n"))
	require.NoError(t, err)
	require.Equal(t, []fact{{"A", "Café", "X"}}, f.companies)
}

// The file that the example was made for is not part of the project.
func TestTheRealFile(t *testing.T) {
	path := filepath.Join("..", "..", "..", "shared", "data", "constituents.csv")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs the real file: %v", err)
	}
	f, err := readFacts(path)
	require.NoError(t, err)
	require.Len(t, f.companies, 503)
	require.Len(t, f.sectors, 11)
	require.Equal(t, "Berkshire Hathaway", f.bySymbol["BRK.B"].name)
	names := newFinder(f)
	require.Len(t, names.named, 500, "three have the name of another")
	for _, c := range names.named {
		require.Equal(t, []string{c.symbol}, names.find(spoken(c.name)), c.name)
	}
}

func TestFaultsOfAFileNameTheLine(t *testing.T) {
	const header = "Symbol,Security,GICS Sector\n"
	for text, want := range map[string]string{
		"":                                     "c.csv: it is empty",
		"Symbol,Name\n":                        `c.csv: the first line does not name a column "Security"`,
		header:                                 "c.csv: it has no companies",
		header + "A,Alpha,X\nb,Beta,X\n":       `c.csv: line 3: "b" is no symbol`,
		header + "A,Alpha,X\nA,Beta,X\n":       "c.csv: line 3: company A stands in the file twice",
		header + "A,Alpha,\n":                  "c.csv: line 2: company A: its sector: bad name",
		header + "A, ,X\n":                     "c.csv: line 2: company A has no name",
		header + "A,Alpha\n":                   "c.csv: record on line 2: wrong number of fields",
		"Symbol,Security,GICS Sector\nA,\"B,C": "c.csv: parse error on line 2",
		header + "A,Caf\xe9,X\n":               "c.csv: it is not UTF-8",
	} {
		_, err := parseFacts("c.csv", []byte(text))
		require.ErrorContains(t, err, want)
	}
	_, err := readFacts("none.csv")
	require.ErrorContains(t, err, "read the companies: open none.csv")
}
