package snapshot

import (
	"encoding/json"
	"errors"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type refusal struct {
	typ  reflect.Type
	want string
}

type embedsTime struct {
	time.Time
	Note string
}

type Opened struct{ time.Time }

type Closed struct{ time.Time }

// embedsTwo has no methods from its fields, since they are ambiguous.
type embedsTwo struct {
	Opened
	Closed
}

type embedsSelf struct {
	*embedsSelf2
}

type embedsSelf2 struct {
	*Embeds
}

type Embeds struct {
	*Embeds
	A int
}

type onlyMarshals struct{ N int }

func (onlyMarshals) MarshalText() ([]byte, error) { return nil, nil }

type onlyUnmarshals struct{ N int }

func (*onlyUnmarshals) UnmarshalJSON([]byte) error { return nil }

type textKey string

func (k textKey) MarshalText() ([]byte, error) { return []byte(k), nil }
func (k *textKey) UnmarshalText(b []byte) error {
	*k = textKey(b)
	return errors.New("never called by those who refuse it")
}

// tagged makes a struct that vet would object to, with fields A, B and so on.
func tagged(tags ...string) reflect.Type {
	var fields []reflect.StructField
	for i, tag := range tags {
		fields = append(fields, reflect.StructField{
			Name: string(rune('A' + i)), Type: reflect.TypeFor[int](), Tag: reflect.StructTag(tag),
		})
	}
	return reflect.StructOf(fields)
}

// bothRefuse lists what no codec takes.
func bothRefuse() []refusal {
	return []refusal{
		{nil, "state has no type"},
		{reflect.TypeFor[chan int](), "is of type chan int, which is no data: keep it outside the state"},
		{reflect.TypeFor[func()](), "is of type func(), which is no data"},
		{reflect.TypeFor[struct{ A complex128 }](), "A: is of type complex128, which has no form in JSON: use two floats"},
		{reflect.TypeFor[struct{ A complex64 }](), "A: is of type complex64"},
		{reflect.TypeFor[struct{ A uintptr }](), "A: is of type uintptr, an address that means nothing later: use uint64 for numbers"},
		{reflect.TypeFor[struct{ Err error }](), "Err: is of interface type error, whose values do not say their type when they are read back"},
		{reflect.TypeFor[struct {
			A []map[string]*struct{ B [2]chan int }
		}](), "A[][].B[]: is of type chan int"},
		{reflect.TypeFor[struct{ hidden int }](), "hidden: is unexported, so its value would be forgotten: export it, or give the type MarshalText and UnmarshalText"},
		{reflect.TypeFor[struct {
			base `json:"base"`
		}](), "base: embeds an unexported type that cannot be set"},
		{reflect.TypeFor[struct{ shade }](), "shade: embeds an unexported type that cannot be set"},
		{reflect.TypeFor[struct{ *place }](), "place: embeds an unexported type that cannot be set: export the type or name the field"},
		{reflect.TypeFor[struct {
			A int `json:"-"`
		}](), `A: is tagged json:"-", so its value would be forgotten: keep it elsewhere or remove the tag`},
		{reflect.TypeFor[struct {
			A int `json:"a,string"`
		}](), `A: is tagged json:",string", a second form for the same value: remove the option`},
		{tagged(`json:"a\"b"`), `A: has the json name "a\"b", which encoding/json refuses`},
		{tagged(`json:"x"`, `json:"x"`), `B: has the same name "x" as field A: give one of them another json tag`},
		{reflect.TypeFor[struct {
			base
			Owner string
		}](), `Owner: has the same name "Owner" as field Owner`},
		{reflect.TypeFor[embedsTime](), "embedsTime has Marshal"},
		{reflect.TypeFor[struct{ E []embedsTime }](), "from its embedded field Time, which forgets its other fields: name that field"},
		{reflect.TypeFor[embedsTwo](), "Opened: embeds snapshot.Opened, which marshals itself and so has no fields of its own: name the field"},
		{reflect.TypeFor[embedsSelf](), "embeds an unexported type"},
		{reflect.TypeFor[Embeds](), "Embeds: embeds itself: name the field"},
		{reflect.TypeFor[**int](), "is of type **int: a nil pointer and a pointer to nil would look the same: use *int"},
		{reflect.TypeFor[struct{ A *[]int }](), "A: is of type *[]int: a nil pointer and a pointer to nil would look the same: use []int"},
		{reflect.TypeFor[struct{ A *map[string]int }](), "use map[string]int"},
		{reflect.TypeFor[map[*int]int](), "[key]: is of "},
		{reflect.TypeFor[map[any]int](), "[key]: is of "},
		{reflect.TypeFor[map[[2]struct{ A *int }]int](), "[key]"},
		{reflect.TypeFor[struct{ S struct{ M map[string]func() } }](), "S.M[]: is of type func()"},
	}
}

func TestBothCodecsRefuse(t *testing.T) {
	for _, c := range []Codec{Msgpack(), JSON()} {
		for _, r := range bothRefuse() {
			err := c.Check(r.typ)
			require.ErrorContains(t, err, r.want, "%s: %v", c.Name(), r.typ)
			require.Equal(t, err, c.Check(r.typ), "the second answer is the first")
			if r.typ != nil {
				require.ErrorContains(t, err, r.typ.String())
			}
		}
	}
}

func TestMsgpackRefuses(t *testing.T) {
	for _, r := range []refusal{
		{reflect.TypeFor[any](), "use a concrete type; for any JSON that can be a string that holds it"},
		{reflect.TypeFor[map[string]any](), "[]: is of interface type interface {}"},
		{reflect.TypeFor[struct{ A []any }](), "A[]: is of interface type interface {}"},
		{reflect.TypeFor[map[*int]int](), "is of pointer type *int, and pointers read back are other keys: use the value as the key"},
		{reflect.TypeFor[map[[2]struct{ A *int }]int](), "[key].A: is of pointer type *int"},
	} {
		require.ErrorContains(t, Msgpack().Check(r.typ), r.want)
		_, err := Msgpack().Append(nil, reflect.New(r.typ).Interface())
		if r.typ != reflect.TypeFor[map[string]any]() {
			require.ErrorContains(t, err, r.want, "Append refuses what Check refuses")
		}
	}
}

func TestJSONRefuses(t *testing.T) {
	for _, r := range []refusal{
		{reflect.TypeFor[map[bool]int](), "[key]: is of type bool, which cannot be the key of a JSON object: use a string or an integer, or the msgpack codec"},
		{reflect.TypeFor[map[float64]int](), "[key]: is of type float64"},
		{reflect.TypeFor[map[place]int](), "[key]: is of type snapshot.place"},
		{reflect.TypeFor[map[textKey]int](), "a key that marshals itself needs MarshalText on the value, UnmarshalText on the pointer, and another kind than string"},
		{reflect.TypeFor[map[onlyMarshals]int](), "a key that marshals itself needs"},
		{reflect.TypeFor[struct{ A onlyMarshals }](), "A: is of type snapshot.onlyMarshals, which has only one of MarshalText and UnmarshalText: add the other"},
		{reflect.TypeFor[struct{ A onlyUnmarshals }](), "A: is of type snapshot.onlyUnmarshals, which has only one of MarshalJSON and UnmarshalJSON"},
		{reflect.TypeFor[map[string]big.Int](), "[]: is of type big.Int, whose MarshalJSON is on the pointer and is not found in a map: use *big.Int"},
		{reflect.TypeFor[map[string]struct{ A [1]big.Float }](), "[].A[]: is of type big.Float, whose MarshalText is on the pointer"},
		{reflect.TypeFor[url.URL](), "User.username: is unexported"},
	} {
		require.ErrorContains(t, JSON().Check(r.typ), r.want)
	}
}

func TestCodecsAccept(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[int](), reflect.TypeFor[string](), reflect.TypeFor[[]byte](), reflect.TypeFor[time.Time](),
		reflect.TypeFor[struct{}](), reflect.TypeFor[*place](), reflect.TypeFor[tree](), reflect.TypeFor[[]tree](),
		reflect.TypeFor[map[string]map[int]*big.Int](), reflect.TypeFor[map[netip.Addr]netip.Addr](),
		reflect.TypeFor[map[string][]big.Int](), reflect.TypeFor[json.Number](), reflect.TypeFor[json.RawMessage](),
		reflect.TypeFor[struct {
			base
			_ int
		}](),
		reflect.TypeFor[struct{ time.Time }](), reflect.TypeFor[struct {
			At time.Time `json:"-,omitempty,unheardof"` //nolint:staticcheck // an odd tag is what is tested
		}](),
	} {
		require.NoError(t, Msgpack().Check(typ))
		require.NoError(t, JSON().Check(typ))
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[map[string]any](), reflect.TypeFor[any](), reflect.TypeFor[struct{ A []any }]()} {
		require.NoError(t, JSON().Check(typ))
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[map[bool]int](), reflect.TypeFor[map[place]int](), reflect.TypeFor[url.URL](), reflect.TypeFor[onlyMarshals](), reflect.TypeFor[map[string]big.Int]()} {
		require.NoError(t, Msgpack().Check(typ))
	}
	_, err := CodecByName("gob")
	require.EqualError(t, err, `codec "gob" is unknown: this program has "msgpack" and "json"`)
	for _, name := range []string{"msgpack", "json"} {
		c, err := CodecByName(name)
		require.NoError(t, err)
		require.Equal(t, name, c.Name())
	}
}
