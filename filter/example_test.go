package filter_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/twinsrv/twinsrv/filter"
	"github.com/twinsrv/twinsrv/snapshot"
)

func room(state string) *snapshot.Record {
	return &snapshot.Record{Life: 7, Revision: 2, Codec: "json", State: []byte(state)}
}

func Example() {
	warm, err := filter.Compile(`state.celsius > 21.0 && name.startsWith("tower-")`)
	if err != nil {
		fmt.Println(err)
		return
	}
	var s filter.Subject // one for all of a scan
	for name, state := range map[string]string{"tower-3-21": `{"celsius":21.5,"floor":"3"}`} {
		s.Reset("rooms", name, room(state))
		matches, err := warm.Match(context.Background(), &s)
		fmt.Println(name, matches, err)
	}
	// Output:
	// tower-3-21 true <nil>
}

func ExampleCompile_error() {
	_, err := filter.Compile("state.celsius > 21.0 &&\n nme == \"x\"")
	var syntax *filter.SyntaxError
	fmt.Println(errors.As(err, &syntax))
	fmt.Println(err)
	// Output:
	// true
	// line 2, column 2: undeclared reference to 'nme'
}

func ExamplePath() {
	p, err := filter.ParsePath(`state["floors"][1].name`)
	if err != nil {
		fmt.Println(err)
		return
	}
	v, ok := p.Value(filter.NewSubject("towers", "north", room(`{"floors":[{"name":"ground"},{"name":"first"}]}`)))
	fmt.Println(p, v, ok)
	_, err = filter.ParsePath("state.floors[x]")
	fmt.Println(err)
	// Output:
	// state.floors[1].name "first" true
	// line 1, column 14: an index from 0 or a quoted name should stand here
}

func ExampleProjection() {
	var paths []filter.Path
	for _, text := range []string{"state.celsius", "name", "state.door.open", "state.nowhere"} {
		p, err := filter.ParsePath(text)
		if err != nil {
			fmt.Println(err)
			return
		}
		paths = append(paths, p)
	}
	projection := filter.NewProjection(paths)
	s := filter.NewSubject("rooms", "lobby", room(`{"celsius":21.50,"door":{"key":7,"open":true},"floor":"0"}`))
	fmt.Println(string(projection.AppendJSON(nil, s)))
	// Output:
	// {"name":"lobby","state":{"celsius":21.50,"door":{"open":true}}}
}

func ExampleFilter_Ranges() {
	f, err := filter.Compile(`state.floor in ["3", "4"] && state.celsius > 21`)
	if err != nil {
		fmt.Println(err)
		return
	}
	floor, _ := filter.ParsePath("state.floor")
	ranges, ok := f.Ranges(floor)
	for _, r := range ranges {
		fmt.Println(r.Low, r.High)
	}
	fmt.Println(ok)
	// Output:
	// "3" "3"
	// "4" "4"
	// true
}
