package snapshot_test

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/twinsrv/twinsrv/snapshot"
)

type room struct {
	Celsius   float64        `json:"celsius"`
	Occupants int            `json:"occupants"`
	Tags      map[string]int `json:"tags,omitempty"`
}

func Example() {
	codec := snapshot.Msgpack()
	if err := codec.Check(reflect.TypeFor[room]()); err != nil {
		fmt.Println(err)
		return
	}
	state, err := codec.Append(nil, &room{Celsius: 21.5, Occupants: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	record := snapshot.Record{
		Life: 7, Revision: 1, Reserved: 1, Changed: time.Unix(1700000000, 0),
		Codec: codec.Name(), State: state,
	}
	stored := record.Append(nil)

	back, err := snapshot.Parse(stored)
	if err != nil {
		fmt.Println(err)
		return
	}
	var r room
	if err := codec.Decode(back.State, &r); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(back.Revision, r.Celsius, r.Occupants)

	stored[9] ^= 1
	_, err = snapshot.Parse(stored)
	fmt.Println(errors.Is(err, snapshot.ErrCorrupt))
	// Output:
	// 1 21.5 2
	// true
}

func ExampleCodec_check() {
	type secret struct {
		Owner string
		pin   int
	}
	_ = secret{}.pin
	fmt.Println(snapshot.Msgpack().Check(reflect.TypeFor[secret]()))
	// Output:
	// type snapshot_test.secret has no canonical msgpack form: pin: is unexported, so its value would be forgotten: export it, or give the type MarshalText and UnmarshalText
}

func ExampleCodec_toJSON() {
	codec := snapshot.Msgpack()
	state, _ := codec.Append(nil, room{Celsius: 21.5, Tags: map[string]int{"b": 2, "a": 1}})
	out, err := codec.ToJSON(state)
	fmt.Println(string(out), err)
	// Output:
	// {"celsius":21.5,"occupants":0,"tags":{"a":1,"b":2}} <nil>
}

func ExampleUpgrades_Apply() {
	codec := snapshot.Msgpack()
	old, _ := codec.Append(nil, struct {
		Fahrenheit float64 `json:"fahrenheit"`
	}{70.7})
	upgrades := snapshot.Upgrades{
		0: func(state map[string]any) error {
			f, ok := state["fahrenheit"].(float64)
			if !ok {
				return errors.New("fahrenheit is no number")
			}
			state["celsius"] = (f - 32) / 1.8
			delete(state, "fahrenheit")
			return nil
		},
	}
	data, err := upgrades.Apply(codec, old, 0, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	var r room
	err = codec.Decode(data, &r)
	fmt.Printf("%.1f %v\n", r.Celsius, err)
	// Output:
	// 21.5 <nil>
}

func ExampleCanonicalJSON() {
	out, err := snapshot.CanonicalJSON([]byte(`{"b": 2523232323232323232, "a": [1.222e-11, "\u003c"]}`))
	fmt.Println(string(out), err)
	// Output:
	// {"a":[1.222e-11,"<"],"b":2523232323232323232} <nil>
}
