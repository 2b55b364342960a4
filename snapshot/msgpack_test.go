package snapshot

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type shade uint8

type label string

type place struct {
	X int16 `json:"x"`
	Y int16 `json:"y"`
}

type base struct {
	Name  string `json:"name"`
	Owner string
}

type Marked struct {
	Mark string `json:"mark,omitempty"`
}

type tree struct {
	Value    int              `json:"value"`
	Left     *tree            `json:"left"`
	Children []tree           `json:"children"`
	ByName   map[string]*tree `json:"byName"`
}

// every holds one field of each form that the codec keeps.
type every struct {
	base
	*Marked
	Bool   bool              `json:"bool"`
	Int    int               `json:"int"`
	I8     int8              `json:"i8"`
	I16    int16             `json:"i16"`
	I32    int32             `json:"i32"`
	I64    int64             `json:"i64"`
	Uint   uint              `json:"uint"`
	U8     uint8             `json:"u8"`
	U16    uint16            `json:"u16"`
	U32    uint32            `json:"u32"`
	U64    uint64            `json:"u64"`
	F32    float32           `json:"f32"`
	F64    float64           `json:"f64"`
	Str    string            `json:"str"`
	Shade  shade             `json:"shade"`
	Label  label             `json:"label"`
	Bytes  []byte            `json:"bytes"`
	Shades []shade           `json:"shades"`
	Hash   [4]byte           `json:"hash"`
	Array  [2]string         `json:"array"`
	List   []int             `json:"list"`
	Lists  [][]string        `json:"lists"`
	Ptr    *int              `json:"ptr"`
	Places []place           `json:"places"`
	Place  *place            `json:"place"`
	When   time.Time         `json:"when"`
	Wait   time.Duration     `json:"wait"`
	Addr   netip.Addr        `json:"addr"`
	Maybe  string            `json:"maybe,omitempty"`
	Later  time.Time         `json:"later,omitzero"`
	M1     map[string]string `json:"m1"`
	M2     map[int]bool      `json:"m2"`
	M3     map[uint8][]int   `json:"m3"`
	M4     map[bool]place    `json:"m4"`
	M5     map[float64]int   `json:"m5"`
	M6     map[place]string  `json:"m6"`
	M7     map[[2]int8]string
	M8     map[netip.Addr]int
	M9     map[label]map[shade]*place
	MA     map[int64]struct{}
	MB     map[float32]uint64
	Tree   *tree
}

func draws[T any](t *rapid.T, name string, g *rapid.Generator[T]) T { return g.Draw(t, name) }

// nilable draws nil as often as it draws anything.
func nilableMap[K comparable, V any](t *rapid.T, name string, k *rapid.Generator[K], v *rapid.Generator[V]) map[K]V {
	if rapid.Bool().Draw(t, name+" nil") {
		return nil
	}
	return rapid.MapOfN(k, v, 0, 5).Draw(t, name)
}

func nilableSlice[V any](t *rapid.T, name string, v *rapid.Generator[V]) []V {
	if rapid.Bool().Draw(t, name+" nil") {
		return nil
	}
	return rapid.SliceOfN(v, 0, 5).Draw(t, name)
}

func drawTime(t *rapid.T, name string) time.Time {
	return time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, name),
		rapid.Int64Range(0, 999_999_999).Draw(t, name+" nsec")).UTC()
}

func drawEvery(t *rapid.T) every {
	places := rapid.Custom(func(t *rapid.T) place {
		return place{rapid.Int16().Draw(t, "x"), rapid.Int16().Draw(t, "y")}
	})
	addrs := rapid.Custom(func(t *rapid.T) netip.Addr {
		return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "addr")))
	})
	labels := rapid.Map(rapid.String(), func(s string) label { return label(s) })
	shades := rapid.Map(rapid.Byte(), func(b byte) shade { return shade(b) })
	pointers := rapid.Ptr(places, true)
	e := every{
		base: base{Name: draws(t, "name", rapid.String()), Owner: draws(t, "owner", rapid.String())},
		Bool: draws(t, "bool", rapid.Bool()),
		Int:  draws(t, "int", rapid.Int()), I8: draws(t, "i8", rapid.Int8()), I16: draws(t, "i16", rapid.Int16()),
		I32: draws(t, "i32", rapid.Int32()), I64: draws(t, "i64", rapid.Int64()),
		Uint: draws(t, "uint", rapid.Uint()), U8: draws(t, "u8", rapid.Uint8()), U16: draws(t, "u16", rapid.Uint16()),
		U32: draws(t, "u32", rapid.Uint32()), U64: draws(t, "u64", rapid.Uint64()),
		F32: draws(t, "f32", rapid.Float32()), F64: draws(t, "f64", rapid.Float64()),
		Str: draws(t, "str", rapid.String()), Shade: draws(t, "shade", shades), Label: draws(t, "label", labels),
		Bytes: nilableSlice(t, "bytes", rapid.Byte()), Shades: nilableSlice(t, "shades", shades),
		Hash:  [4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "hash")),
		Array: [2]string{draws(t, "a0", rapid.String()), draws(t, "a1", rapid.String())},
		List:  nilableSlice(t, "list", rapid.Int()),
		Lists: nilableSlice(t, "lists", rapid.Custom(func(t *rapid.T) []string { return nilableSlice(t, "inner", rapid.String()) })),
		Ptr:   draws(t, "ptr", rapid.Ptr(rapid.Int(), true)), Places: nilableSlice(t, "places", places),
		Place: draws(t, "place", pointers), When: drawTime(t, "when"), Wait: time.Duration(draws(t, "wait", rapid.Int64())),
		Addr: draws(t, "address", addrs), Maybe: draws(t, "maybe", rapid.String()),
		M1: nilableMap(t, "m1", rapid.String(), rapid.String()),
		M2: nilableMap(t, "m2", rapid.Int(), rapid.Bool()),
		M3: nilableMap(t, "m3", rapid.Uint8(), rapid.SliceOf(rapid.Int())),
		M4: nilableMap(t, "m4", rapid.Bool(), places),
		M5: nilableMap(t, "m5", rapid.Float64(), rapid.Int()),
		M6: nilableMap(t, "m6", places, rapid.String()),
		M7: nilableMap(t, "m7", rapid.Map(places, func(p place) [2]int8 { return [2]int8{int8(p.X), int8(p.Y)} }), rapid.String()),
		M8: nilableMap(t, "m8", addrs, rapid.Int()),
		M9: nilableMap(t, "m9", labels, rapid.MapOfN(shades, pointers, 0, 3)),
		MA: nilableMap(t, "ma", rapid.Int64(), rapid.Just(struct{}{})),
		MB: nilableMap(t, "mb", rapid.Float32(), rapid.Uint64()),
	}
	if rapid.Bool().Draw(t, "marked") {
		e.Marked = &Marked{Mark: rapid.StringN(1, 5, -1).Draw(t, "mark")}
	}
	if rapid.Bool().Draw(t, "later") {
		e.Later = drawTime(t, "later time")
	}
	if rapid.Bool().Draw(t, "tree") {
		e.Tree = &tree{Value: 1, Left: &tree{Children: []tree{}}, Children: []tree{{Value: 2}},
			ByName: map[string]*tree{"none": nil, "one": {Value: 3}}}
	}
	return e
}

func reorder[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return nil
	}
	keys := slices.Collect(maps.Keys(m))
	out := make(map[K]V, len(m)*3)
	for _, k := range slices.Backward(keys) {
		out[k] = m[k]
	}
	return out
}

func TestMsgpackRoundTripsCanonically(t *testing.T) {
	c := Msgpack()
	require.NoError(t, c.Check(reflect.TypeFor[every]()))
	rapid.Check(t, func(t *rapid.T) {
		in := drawEvery(t)
		data, err := c.Append([]byte("x"), &in)
		require.NoError(t, err)
		require.Equal(t, byte('x'), data[0])
		data = data[1:]

		var out every
		out.Str, out.M1 = "left over", map[string]string{"left": "over"}
		require.NoError(t, c.Decode(data, &out))
		require.Equal(t, in, out)

		// Equal values, in another order, by value, by another codec: the same bytes.
		out.M1, out.M2, out.M3, out.M5, out.M6 = reorder(out.M1), reorder(out.M2), reorder(out.M3), reorder(out.M5), reorder(out.M6)
		out.M7, out.M8, out.M9, out.MB = reorder(out.M7), reorder(out.M8), reorder(out.M9), reorder(out.MB)
		again, err := Msgpack().Append(nil, out)
		require.NoError(t, err)
		require.Equal(t, data, again)

		// The tree form loses nothing either, and it renders.
		var generic map[string]any
		require.NoError(t, c.Decode(data, &generic))
		data, err = c.Append(nil, generic)
		require.NoError(t, err)
		var back every
		require.NoError(t, c.Decode(data, &back))
		require.Equal(t, in, back)
		rendered, err := c.ToJSON(data)
		require.NoError(t, err)
		canonical, err := CanonicalJSON(rendered)
		require.NoError(t, err)
		require.Equal(t, string(canonical), string(rendered))
	})
}

// The stored form is a promise: this test may only ever grow.
func TestMsgpackIsGolden(t *testing.T) {
	type golden struct {
		Name  string         `json:"name"`
		Count int            `json:"count"`
		Mean  float64        `json:"mean"`
		Small float32        `json:"small"`
		Raw   []byte         `json:"raw"`
		Tags  map[string]int `json:"tags"`
		Byint map[int]bool   `json:"byint"`
		When  time.Time      `json:"when"`
		Ptr   *int           `json:"ptr"`
		Nums  []uint16       `json:"nums"`
		Addr  netip.Addr     `json:"addr"`
	}
	data, err := Msgpack().Append(nil, golden{
		Name: "é", Count: -33, Mean: 1.5, Small: 0.5, Raw: []byte{1, 2},
		Tags: map[string]int{"b": 2, "a": 300}, Byint: map[int]bool{200: true, -1: false, 3: true},
		When: time.Unix(1<<33, 7), Nums: []uint16{0, 65535}, Addr: netip.MustParseAddr("10.0.0.1"),
	})
	require.NoError(t, err)
	require.Equal(t, "8b"+
		"a46e616d65"+"a2c3a9"+
		"a5636f756e74"+"d0df"+
		"a46d65616e"+"cb3ff8000000000000"+
		"a5736d616c6c"+"ca3f000000"+
		"a3726177"+"c4020102"+
		"a474616773"+"82"+"a161cd012c"+"a16202"+
		"a56279696e74"+"83"+"03c3"+"ccc8c3"+"ffc2"+
		"a47768656e"+"d7ff0000001e00000000"+
		"a3707472"+"c0"+
		"a46e756d73"+"9200cdffff"+
		"a461646472"+"a831302e302e302e31", hex.EncodeToString(data))
}

func TestNilAndEmptyStayApart(t *testing.T) {
	type state struct {
		M map[string]int
		S []int
		B []byte
	}
	c := Msgpack()
	for _, in := range []state{{}, {M: map[string]int{}}, {S: []int{}}, {B: []byte{}}} {
		data, err := c.Append(nil, in)
		require.NoError(t, err)
		var out state
		require.NoError(t, c.Decode(data, &out))
		require.Equal(t, in, out)
	}
}

func TestFieldsMayComeAndGo(t *testing.T) {
	type before struct {
		Gone struct {
			Deep []map[string][]byte
			When time.Time
		} `json:"gone"`
		Kept int   `json:"kept"`
		Also int8  `json:"also"`
		Wide int32 `json:"wide"`
		Ptr  *int  `json:"ptr"`
		Real int   `json:"real"`
	}
	type after struct {
		Added map[string]int `json:"added"`
		Wide  int64          `json:"wide"`
		Kept  int            `json:"kept"`
		Ptr   int            `json:"ptr"`
		Real  float32        `json:"real"`
	}
	old := before{Kept: 5, Wide: -7, Real: 3}
	old.Gone.Deep = []map[string][]byte{{"a": {1, 2}}, nil}
	for _, c := range []Codec{Msgpack(), JSON()} {
		data, err := c.Append(nil, old)
		require.NoError(t, err)
		out := after{Added: map[string]int{"stale": 1}}
		require.NoError(t, c.Decode(data, &out), c.Name())
		require.Equal(t, after{Kept: 5, Wide: -7, Real: 3}, out, c.Name())
	}
}

func TestTimesKeepTheirInstant(t *testing.T) {
	c := Msgpack()
	for _, in := range []time.Time{
		{}, time.Unix(0, 0), time.Unix(1<<34, 1), time.Unix(-1, 999_999_999), time.Now(),
		time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(2024, 7, 1, 12, 0, 0, 5, time.FixedZone("", -5*3600)),
	} {
		data, err := c.Append(nil, in)
		require.NoError(t, err)
		var out time.Time
		require.NoError(t, c.Decode(data, &out))
		require.True(t, in.Equal(out), "%v, %v", in, out)
		require.Equal(t, in.UTC().Round(0), out)
		same, err := c.Append(nil, in.UTC())
		require.NoError(t, err)
		require.Equal(t, data, same)
	}
	for _, in := range []time.Time{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 12, 31, 0, 0, 0, 0, time.UTC)} {
		_, err := c.Append(nil, struct{ At []time.Time }{[]time.Time{in}})
		require.ErrorContains(t, err, "At[0]: time has the year")
		require.ErrorContains(t, err, "only 0 to 9999 can be kept")
	}
	// The year 10000 reached by noise.
	var out time.Time
	require.ErrorContains(t, c.Decode([]byte{0xc7, 12, 0xff, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, &out), "year")
}

func TestMinusZeroIsZero(t *testing.T) {
	c := Msgpack()
	minus := math.Copysign(0, -1)
	a, err := c.Append(nil, map[string]float64{"a": minus})
	require.NoError(t, err)
	b, err := c.Append(nil, map[string]float64{"a": 0})
	require.NoError(t, err)
	require.Equal(t, a, b)
	a, err = c.Append(nil, map[float32]int{float32(minus): 1})
	require.NoError(t, err)
	b, err = c.Append(nil, map[float32]int{0: 1})
	require.NoError(t, err)
	require.Equal(t, a, b)
}

// Types that marshal themselves, in every form and with either receiver.
type selfMade struct {
	Big    big.Int
	BigPtr *big.Int
	Bigs   map[string]big.Int
	Rats   []big.Rat
	URL    url.URL // MarshalBinary only
	URLPtr *url.URL
	Odd    oddJSON
	Odds   map[oddText]oddJSON
}

type oddJSON struct{ v int }

func (o oddJSON) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{ "v" : [ %d ], "a":1.0 }`, o.v), nil
}

func (o *oddJSON) UnmarshalJSON(b []byte) error {
	_, err := fmt.Sscanf(string(b), `{"a":1.0,"v":[%d]}`, &o.v)
	return err
}

type oddText struct{ n int }

func (o oddText) MarshalText() ([]byte, error) { return []byte(strings.Repeat("i", o.n)), nil }

func (o *oddText) UnmarshalText(b []byte) error {
	if bytes.ContainsAny(b, "!") {
		panic("not mine")
	}
	o.n = len(b)
	return nil
}

func TestTypesThatMarshalThemselves(t *testing.T) {
	c := Msgpack()
	huge, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	in := selfMade{
		Big: *huge, BigPtr: big.NewInt(-1), Bigs: map[string]big.Int{"x": *huge},
		Rats: []big.Rat{*big.NewRat(1, 3)}, URL: url.URL{Scheme: "http", Host: "h"},
		Odd: oddJSON{4}, Odds: map[oddText]oddJSON{{2}: {5}, {1}: {6}},
	}
	data, err := c.Append(nil, in) // by value: methods on pointers are found all the same
	require.NoError(t, err)
	same, err := c.Append(nil, &in)
	require.NoError(t, err)
	require.Equal(t, data, same)
	var out selfMade
	require.NoError(t, c.Decode(data, &out))
	require.Equal(t, in, out)
	require.Nil(t, out.URLPtr)

	rendered, err := c.ToJSON(data)
	require.NoError(t, err)
	require.Contains(t, string(rendered), `"Odds":{"i":"{\"a\":1.0,\"v\":[6]}","ii":"{\"a\":1.0,\"v\":[5]}"}`)

	bad, err := c.Append(nil, "no!")
	require.NoError(t, err)
	var o oddText
	require.ErrorContains(t, c.Decode(bad, &o), "unmarshalling panicked: not mine")
}

func TestTwoKeysWithOneEncodingAreRefused(t *testing.T) {
	now := time.Now().Round(0)
	_, err := Msgpack().Append(nil, map[time.Time]int{now.UTC(): 1, now.In(time.FixedZone("", 60)): 2})
	require.ErrorContains(t, err, "two keys of the map have the same encoding")
}

func TestValuesWithoutAFormAreRefused(t *testing.T) {
	type inner struct {
		Celsius float64
		Small   float32
		Name    string
	}
	type outer struct {
		Rooms map[string][]inner
		Text  map[string]int
		Keys  map[float64]int
		Loop  *tree
	}
	loop := &tree{}
	loop.Left = loop
	siblings := &tree{Children: make([]tree, 1)}
	siblings.Children[0].Children = siblings.Children
	deep := &tree{}
	for range 2000 {
		deep = &tree{Left: deep}
	}
	c := Msgpack()
	for want, v := range map[string]outer{
		`Rooms["a"][1].Celsius: NaN cannot be kept: only finite numbers can`: {Rooms: map[string][]inner{"a": {{}, {Celsius: math.NaN()}}}},
		`Rooms["a"][0].Celsius: +Inf cannot be kept`:                         {Rooms: map[string][]inner{"a": {{Celsius: math.Inf(1)}}}},
		`Rooms["a"][0].Small: -Inf cannot be kept`:                           {Rooms: map[string][]inner{"a": {{Small: float32(math.Inf(-1))}}}},
		`Rooms["a"][0].Name: "x\xff" is not valid UTF-8`:                     {Rooms: map[string][]inner{"a": {{Name: "x\xff"}}}},
		`Text["\xff"]: "\xff" is not valid UTF-8`:                            {Text: map[string]int{"\xff": 1}},
		`Keys[NaN]: NaN cannot be kept`:                                      {Keys: map[float64]int{math.NaN(): 1}},
		"Left.Left: nests deeper than 1000 levels, or holds itself":          {Loop: loop},
		"Children[0].Children[0]":                                            {Loop: siblings},
		"nests deeper than 1000 levels":                                      {Loop: deep},
	} {
		out, err := c.Append([]byte("kept"), v)
		require.ErrorContains(t, err, want)
		require.Equal(t, "kept", string(out))
		_, err = c.Append(nil, &v)
		require.ErrorContains(t, err, want)
	}
	var none *outer
	for want, v := range map[string]any{"pointer is nil": none, "nil has no type": nil, "interface type interface {}": []any{1}} {
		_, err := c.Append(nil, v)
		require.ErrorContains(t, err, want)
	}
}

func TestWhatEncodesAtTheDepthLimitDecodes(t *testing.T) {
	c := Msgpack()
	deep := &tree{Children: []tree{}}
	levels := 1
	for ; ; levels++ {
		next := &tree{Left: deep}
		data, err := c.Append(nil, next)
		if err != nil {
			break
		}
		var out tree
		require.NoError(t, c.Decode(data, &out))
		var other struct{ Unrelated int }
		require.NoError(t, c.Decode(data, &other))
		_, err = c.ToJSON(data)
		require.NoError(t, err)
		deep = next
	}
	require.Greater(t, levels, 400)
}

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
