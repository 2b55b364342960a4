package snapshot

import (
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// allocatedBytes says how much f allocates, in bytes.
func allocatedBytes(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// reading is a state of twelve fields, as people write them.
type reading struct {
	Building  string    `json:"building"`
	Floor     string    `json:"floor"`
	Celsius   float64   `json:"celsius"`
	Humidity  float64   `json:"humidity"`
	Pressure  float32   `json:"pressure"`
	Occupants int       `json:"occupants"`
	Alarms    uint32    `json:"alarms"`
	Lit       bool      `json:"lit"`
	Locked    bool      `json:"locked"`
	Updated   time.Time `json:"updated"`
	Count     int64     `json:"count"`
	Note      string    `json:"note"`
}

func sample() *reading {
	return &reading{
		Building: "tower-3", Floor: "tower-3-21", Celsius: 21.5, Humidity: 0.4, Pressure: 1013.25,
		Occupants: 12, Alarms: 1, Lit: true, Updated: time.Unix(1700000000, 5), Count: 1 << 40, Note: "fine",
	}
}

func TestEncodingAllocatesNothing(t *testing.T) {
	c, state, buf := Msgpack(), sample(), make([]byte, 0, 512)
	require.NoError(t, c.Check(reflect.TypeFor[reading]()))
	// One is granted to the race detector, which drops pooled values.
	require.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		_, _ = c.Append(buf, state)
	}), 1.0)
}

func BenchmarkMsgpackAppend(b *testing.B) {
	c, state, buf := Msgpack(), sample(), make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Append(buf, state); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMsgpackAppendMap(b *testing.B) {
	c, buf := Msgpack(), make([]byte, 0, 4096)
	m := map[string]int{}
	for _, k := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		m[k] = len(m)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Append(buf, &m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMsgpackDecode(b *testing.B) {
	c := Msgpack()
	data, err := c.Append(nil, sample())
	require.NoError(b, err)
	var out reading
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Decode(data, &out); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkJSONAppend(b *testing.B) {
	c, state, buf := JSON(), sample(), make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Append(buf, state); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEnvelope(b *testing.B) {
	r, buf := goldenRecord(), make([]byte, 0, 512)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(r.Append(buf)); err != nil {
			b.Fatal(err)
		}
	}
}
