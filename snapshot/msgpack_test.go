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
