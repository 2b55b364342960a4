package main

import (
	"bytes"
	_ "embed" // the sample
	"encoding/csv"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/twinsrv/twinsrv/entity"
)

// facts are what a file says of companies. They do not change.
type facts struct {
	file      string // without its folder
	companies []fact // in the order of the file
	bySymbol  map[string]fact
	sectors   []string // sorted
	sum       uint32   // of the file: another one makes other headlines
}

// fact is a company.
type fact struct {
	symbol, name, sector string
}

//go:embed sample/companies.csv
var sample []byte

// sampleFacts are a few companies that everybody knows.
func sampleFacts() (*facts, error) { return parseFacts("companies.csv", sample) }

// readFacts reads a file of companies: its first line names the columns, of
// which Symbol, Security and "GICS Sector" are read.
func readFacts(path string) (*facts, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the companies: %w", err)
	}
	f, err := parseFacts(filepath.Base(path), data)
	if err != nil {
		return nil, fmt.Errorf("read the companies: %w", err)
	}
	return f, nil
}

// symbols is the form of a company's symbol, which is its entity's name.
const symbols = `[A-Z0-9][A-Z0-9.-]{0,15}`

var symbolForm = regexp.MustCompile(`^` + symbols + `$`)

func parseFacts(file string, data []byte) (*facts, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%s: it is not UTF-8; convert it", file)
	}
	rows := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff")))) // as some programs begin UTF-8
	header, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: it is empty; the first line must name the columns", file)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var at [3]int
	for i, column := range []string{"Symbol", "Security", "GICS Sector"} {
		if at[i] = slices.Index(header, column); at[i] < 0 {
			return nil, fmt.Errorf("%s: the first line does not name a column %q", file, column)
		}
	}
	f := &facts{file: file, bySymbol: map[string]fact{}, sum: crc32.ChecksumIEEE(data)}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err) // it has the line
		}
		c := fact{symbol: row[at[0]], name: row[at[1]], sector: row[at[2]]}
		if err := f.add(c); err != nil {
			line, _ := rows.FieldPos(0)
			return nil, fmt.Errorf("%s: line %d: %w", file, line, err)
		}
	}
	if len(f.companies) == 0 {
		return nil, fmt.Errorf("%s: it has no companies", file)
	}
	slices.Sort(f.sectors)
	return f, nil
}

func (f *facts) add(c fact) error {
	if !symbolForm.MatchString(c.symbol) {
		return fmt.Errorf("%q is no symbol: it must match %s", c.symbol, symbols)
	}
	if _, twice := f.bySymbol[c.symbol]; twice {
		return fmt.Errorf("company %s stands in the file twice", c.symbol)
	}
	if len(spoken(c.name)) == 0 {
		return fmt.Errorf("company %s has no name", c.symbol)
	}
	if err := entity.CheckName(c.sector); err != nil {
		return fmt.Errorf("company %s: its sector: %w", c.symbol, err)
	}
	f.companies = append(f.companies, c)
	f.bySymbol[c.symbol] = c
	if !slices.Contains(f.sectors, c.sector) {
		f.sectors = append(f.sectors, c.sector)
	}
	return nil
}
