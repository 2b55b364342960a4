package snapshot

import (
	"bytes"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDecodeRefusesWhatDoesNotFit(t *testing.T) {
	type target struct {
		A int8
		B uint16
		C float32
		D string
		E bool
		F []int
		G map[string]int
		H [2]int
		I [3]byte
		J time.Time
		K *int
		L []byte
		M oddText
		N uint64
		O int64
	}
	c := Msgpack()
	one := func(name string, v any) []byte {
		data, err := c.Append(nil, map[string]any{name: v})
		require.NoError(t, err)
		return data
	}
	for want, data := range map[string][]byte{
		"A: 128 does not fit int8":                     one("A", 128),
		"A: -129 does not fit int8":                    one("A", -129),
		"A: is stored as a float64, want an integer":   one("A", 1.0),
		"B: -1 does not fit uint16":                    one("B", -1),
		"B: 65536 does not fit uint16":                 one("B", 65536),
		"N: -1 does not fit uint64":                    one("N", -1),
		"O: 18446744073709551615 does not fit int64":   one("O", uint64(math.MaxUint64)),
		"C: 0.1 does not fit float32":                  one("C", 0.1),
		"C: 9007199254740993 does not fit float32":     one("C", 1<<53+1),
		"D: is stored as bytes, want a string":         one("D", []byte("x")),
		"E: is stored as an integer, want a bool":      one("E", 1),
		"F[1]: is stored as a string, want an integer": one("F", []any{1, "x"}),
		`G["x"]: is stored as a bool, want an integer`: one("G", map[string]any{"x": true}),
		"H: has 3 elements, want 2":                    one("H", []int{1, 2, 3}),
		"I: has 2 bytes, want 3":                       one("I", []byte{1, 2}),
		"J: is stored as a string, want an extension":  one("J", "2024-01-01"),
		"K: is stored as a map, want an integer":       one("K", map[string]int{}),
		"L: is stored as a string, want bytes":         one("L", "x"),
		"M: is stored as bytes, want a string":         one("M", []byte("x")),
		"msgpack value is followed by 1 surplus bytes": append(one("A", 1), 0xc0),
		"msgpack ends too early":                       one("A", 1)[:3],
		"is stored as an integer, want a map":          {1},
		"is not valid UTF-8":                           {0x81, 0xa1, 'D', 0xa1, 0xff},
		"NaN cannot be kept":                           {0x81, 0xa1, 'C', 0xca, 0x7f, 0xc0, 0, 0},
		"map has the same key twice":                   {0x81, 0xa1, 'G', 0x82, 0xa1, 'x', 1, 0xa1, 'x', 2},
		"extension 5 of 1 bytes is no time":            {0x81, 0xa1, 'J', 0xd4, 5, 0},
		"is stored as an invalid byte":                 {0x81, 0xa1, 'A', 0xc1},
		"byte 0xc1 at offset 3 begins no value":        {0x81, 0xa1, 'Z', 0xc1},
	} {
		out := target{A: 7, D: "kept"}
		require.ErrorContains(t, c.Decode(data, &out), want)
		require.Equal(t, target{A: 7, D: "kept"}, out, "into is untouched after %q", want)
	}
	require.ErrorContains(t, c.Decode(nil, new(target)), "msgpack ends too early")
	for _, into := range []any{nil, target{}, (*target)(nil)} {
		require.ErrorContains(t, c.Decode([]byte{0x80}, into), "a pointer is needed")
	}
	require.ErrorContains(t, c.Decode([]byte{0x80}, new(chan int)), "is no data")
}

// Lengths that the input only claims must not be allocated, nor nesting
// followed without end.
func TestNoiseCostsNoMoreThanItsSize(t *testing.T) {
	type wide struct {
		Rows  [][256]int64
		Bytes []byte
		Text  string
		Map   map[string][64]int
		Big   []map[string]string
	}
	c := Msgpack()
	require.NoError(t, c.Check(reflect.TypeFor[wide]()))
	claims := map[string][]byte{}
	for _, f := range []string{"Rows", "Bytes", "Text", "Map", "Big", "Unknown"} {
		for _, code := range []byte{0xdd, 0xdf, 0xdb, 0xc6, 0xc9} {
			head := append([]byte{0x81, 0xa0 | byte(len(f))}, f...)
			claims[fmt.Sprint(f, code)] = append(head, code, 0x7f, 0xff, 0xff, 0xff, 1, 1, 1)
			claims[fmt.Sprint(f, code, "max")] = append(head, code, 0xff, 0xff, 0xff, 0xff, 1, 1, 1)
		}
	}
	for name, data := range claims {
		perRun := allocatedBytes(func() {
			require.Error(t, c.Decode(data, new(wide)))
			var m map[string]any
			require.Error(t, c.Decode(data, &m))
			_, err := c.ToJSON(data)
			require.Error(t, err)
		})
		require.Less(t, perRun, uint64(1<<18), name)
	}
	for _, code := range []byte{0x91, 0x81} {
		nested := bytes.Repeat([]byte{code}, 4<<20)
		require.ErrorContains(t, c.Decode(append([]byte{0x81, 0xa1, 'x'}, nested...), new(wide)), "nests deeper")
		_, err := c.ToJSON(nested)
		require.ErrorContains(t, err, "nests deeper")
	}
}

func TestToJSON(t *testing.T) {
	type state struct {
		Text   string
		Bytes  []byte
		When   time.Time
		F32    float32
		F64    float64
		Max    uint64
		Min    int64
		ByInt  map[int]bool
		ByUint map[uint64]bool
		ByBool map[bool]int
		ByF    map[float64]int
		ByKey  map[place]int
		Nil    *int
		HTML   string
	}
	c := Msgpack()
	data, err := c.Append(nil, state{
		Text: "é\n", Bytes: []byte{0xfb, 0xff}, When: time.Date(2024, 1, 2, 3, 4, 5, 600, time.FixedZone("", 3600)),
		F32: 0.1, F64: 1e21, Max: math.MaxUint64, Min: math.MinInt64,
		ByInt: map[int]bool{-1: true, 10: false}, ByUint: map[uint64]bool{math.MaxUint64: true},
		ByBool: map[bool]int{true: 1, false: 0}, ByF: map[float64]int{1.5: 1},
		ByKey: map[place]int{{1, 2}: 3}, HTML: "<&>",
	})
	require.NoError(t, err)
	out, err := c.ToJSON(data)
	require.NoError(t, err)
	require.Equal(t, `{"ByBool":{"false":0,"true":1},"ByF":{"1.5":1},"ByInt":{"-1":true,"10":false},`+
		`"ByKey":{"{\"x\":1,\"y\":2}":3},"ByUint":{"18446744073709551615":true},"Bytes":"+/8=","F32":0.1,"F64":1e+21,`+
		`"HTML":"<&>","Max":18446744073709551615,"Min":-9223372036854775808,"Nil":null,"Text":"é\n",`+
		`"When":"2024-01-02T02:04:05.0000006Z"}`, string(out))

	for want, data := range map[string][]byte{
		"surplus":                           {0x80, 0},
		"ends too early":                    {0x81},
		"two keys with the same text":       {0x82, 0x01, 0xc0, 0xa1, '1', 0xc0},
		"NaN cannot be kept":                {0xca, 0x7f, 0xc0, 0, 0},
		"extension 1 of 1 bytes is no time": {0xd4, 1, 0},
	} {
		_, err := c.ToJSON(data)
		require.ErrorContains(t, err, want)
	}
}

func TestCodecsShareNothing(t *testing.T) {
	a, b := Msgpack().(*msgpackCodec), Msgpack().(*msgpackCodec)
	require.NoError(t, a.Check(reflect.TypeFor[place]()))
	_, known := b.plans.Load(reflect.TypeFor[place]())
	require.False(t, known)
}

func FuzzMsgpackDecode(f *testing.F) {
	c := Msgpack()
	require.NoError(f, c.Check(reflect.TypeFor[every]()))
	for _, e := range []every{{}, {
		base: base{Name: "n"}, Bytes: []byte{1}, List: []int{1, -5}, M1: map[string]string{"a": "b"},
		M6: map[place]string{{1, 2}: "x"}, M9: map[label]map[shade]*place{"l": {3: {1, 2}}},
		When: time.Unix(1, 2), Addr: netip.MustParseAddr("::1"), Tree: &tree{Left: &tree{}},
	}} {
		data, err := c.Append(nil, e)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte{0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Add(bytes.Repeat([]byte{0x91}, 3000))
	f.Add([]byte{0x81, 0xa1, 'x', 0xc7, 12, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		var e every
		if c.Decode(data, &e) == nil {
			// What decodes encodes, and its canonical form is stable.
			first, err := c.Append(nil, &e)
			require.NoError(t, err)
			var again every
			require.NoError(t, c.Decode(first, &again))
			second, err := c.Append(nil, &again)
			require.NoError(t, err)
			require.Equal(t, first, second)
		}
		var m map[string]any
		if c.Decode(data, &m) == nil && m != nil {
			_, err := c.Append(nil, m)
			require.NoError(t, err)
		}
		if out, err := c.ToJSON(data); err == nil {
			_, err = CanonicalJSON(out)
			require.NoError(t, err)
		}
	})
}
