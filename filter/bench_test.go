package filter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/snapshot"
)

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

type warm struct {
	name  string
	state *reading
	tree  map[string]any
}

const population = 100_000

func readings(b *testing.B, codec snapshot.Codec) ([]warm, []snapshot.Record) {
	b.Helper()
	entities, records := make([]warm, population), make([]snapshot.Record, population)
	for i := range entities {
		r := &reading{
			Building: fmt.Sprintf("tower-%d", i%7), Floor: fmt.Sprintf("tower-%d-%d", i%7, i%40),
			Celsius: 15 + float64(i*7919%1200)/100, Humidity: 0.4, Pressure: 1013.25, Occupants: i % 30, Alarms: 1,
			Lit: i%2 == 0, Updated: time.Unix(1700000000+int64(i), 5).UTC(), Count: int64(i), Note: "fine",
		}
		prefix := "tower"
		if i%3 == 0 {
			prefix = "lobby"
		}
		entities[i] = warm{name: fmt.Sprintf("%s-%d-%d", prefix, i%40, i), state: r}
		data, err := codec.Append(nil, r)
		require.NoError(b, err)
		text, err := codec.ToJSON(data)
		require.NoError(b, err)
		require.NoError(b, json.Unmarshal(text, &entities[i].tree))
		records[i] = snapshot.Record{Life: 1, Revision: uint64(i), Codec: codec.Name(), State: data}
	}
	return entities, records
}

const benchExpression = `state.celsius > 21.0 && name.startsWith("tower-")`

func perEntity(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/population, "ns/entity")
}

func BenchmarkLoopStructs(b *testing.B) {
	entities, _ := readings(b, snapshot.Msgpack())
	found := 0
	for b.Loop() {
		for i := range entities {
			if e := &entities[i]; e.state.Celsius > 21.0 && strings.HasPrefix(e.name, "tower-") {
				found++
			}
		}
	}
	perEntity(b)
}

func BenchmarkLoopMaps(b *testing.B) {
	entities, _ := readings(b, snapshot.Msgpack())
	found := 0
	for b.Loop() {
		for i := range entities {
			e := &entities[i]
			if c, ok := e.tree["celsius"].(float64); ok && c > 21.0 && strings.HasPrefix(e.name, "tower-") {
				found++
			}
		}
	}
	perEntity(b)
}

func benchmarkFilter(b *testing.B, codec snapshot.Codec, expression string) {
	entities, records := readings(b, codec)
	f, err := filter.Compile(expression)
	require.NoError(b, err)
	var s filter.Subject
	ctx, found := context.Background(), 0
	b.ReportAllocs()
	for b.Loop() {
		for i := range records {
			s.Reset("rooms", entities[i].name, &records[i])
			ok, err := f.Match(ctx, &s)
			if err != nil {
				b.Fatal(err)
			}
			if ok {
				found++
			}
		}
	}
	perEntity(b)
}

func BenchmarkFilterMsgpack(b *testing.B) { benchmarkFilter(b, snapshot.Msgpack(), benchExpression) }
func BenchmarkFilterJSON(b *testing.B)    { benchmarkFilter(b, snapshot.JSON(), benchExpression) }

// The last field costs more than the third.
func BenchmarkFilterMsgpackLast(b *testing.B) {
	benchmarkFilter(b, snapshot.Msgpack(), `state.note == "fine" && state.count > 5`)
}

func BenchmarkFilterJSONLast(b *testing.B) {
	benchmarkFilter(b, snapshot.JSON(), `state.updated != "" && state.pressure > 5`)
}

// What has no form of its own here is left to cel-go.
func BenchmarkFilterCEL(b *testing.B) {
	benchmarkFilter(b, snapshot.Msgpack(), `state.celsius * 1.8 + 32.0 > 70.0 && name.startsWith("tower-")`)
}

func BenchmarkFilterCELLoop(b *testing.B) {
	benchmarkFilter(b, snapshot.Msgpack(), `["a", "b"].exists(x, x == state.note) || name == ""`)
}

// What an element costs does not depend on how many there are.
func BenchmarkFilterCELLongLists(b *testing.B) {
	f, err := filter.Compile(`state.l.exists(x, x == 1)`)
	require.NoError(b, err)
	for _, length := range []int{1_000, 4_000, 16_000} {
		b.Run(fmt.Sprint(length), func(b *testing.B) {
			data, err := snapshot.Msgpack().Append(nil, map[string]any{"l": make([]int, length)})
			require.NoError(b, err)
			s := filter.NewSubject("rooms", "a", &snapshot.Record{Codec: snapshot.Msgpack().Name(), State: data})
			for b.Loop() {
				if _, err := f.Match(context.Background(), s); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*length), "ns/element")
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := filter.Compile(benchExpression); err != nil {
			b.Fatal(err)
		}
	}
}
