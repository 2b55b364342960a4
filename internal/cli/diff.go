package cli

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// difference is one place in which two states differ. As a list they are a JSON
// patch that makes the later of the earlier one, if they are done in their order.
type difference struct {
	Op    string          `json:"op"` // add, remove or replace
	Path  string          `json:"path"`
	Was   json.RawMessage `json:"was,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// String returns the difference for people.
func (d difference) String() string {
	path := d.Path
	if path == "" {
		path = "/"
	}
	switch d.Op {
	case "add":
		return "+" + path + " " + cell(d.Value)
	case "remove":
		return "-" + path + " " + cell(d.Was)
	}
	return path + " " + cell(d.Was) + " → " + cell(d.Value)
}

// whole is a state as the difference to nothing.
func whole(state json.RawMessage) []difference {
	if state == nil {
		return []difference{}
	}
	return differences(nil, state)
}

// differences compares two values; was may be nil, for nothing, which is
// compared as an empty object.
func differences(was, now json.RawMessage) []difference {
	if was == nil {
		was = json.RawMessage("{}")
	}
	all := []difference{}
	compare("", was, now, &all)
	return all
}

func compare(path string, was, now json.RawMessage, to *[]difference) {
	if same(was, now) {
		return
	}
	wasObject, object1 := membersOf(was)
	nowObject, object2 := membersOf(now)
	wasList, list1 := elementsOf(was)
	nowList, list2 := elementsOf(now)
	switch {
	case object1 && object2:
		compareMembers(path, wasObject, nowObject, to)
	case list1 && list2:
		compareElements(path, wasList, nowList, to)
	default:
		*to = append(*to, difference{Op: "replace", Path: path, Was: was, Value: now})
	}
}

func compareMembers(path string, was, now []member, to *[]difference) {
	after := make(map[string]json.RawMessage, len(now))
	for _, m := range now {
		after[m.name] = m.value
	}
	before := make(map[string]bool, len(was))
	for _, m := range was {
		before[m.name] = true
		at := path + "/" + token(m.name)
		if v, there := after[m.name]; there {
			compare(at, m.value, v, to)
		} else {
			*to = append(*to, difference{Op: "remove", Path: at, Was: m.value})
		}
	}
	for _, m := range now {
		if !before[m.name] {
			*to = append(*to, difference{Op: "add", Path: path + "/" + token(m.name), Value: m.value})
		}
	}
}

// compareElements compares place by place: what was put in before others shows
// as changes of those.
func compareElements(path string, was, now []json.RawMessage, to *[]difference) {
	for i := range min(len(was), len(now)) {
		compare(path+"/"+strconv.Itoa(i), was[i], now[i], to)
	}
	for i := len(was) - 1; i >= len(now); i-- { // from the end, so that the places before stay what they are
		*to = append(*to, difference{Op: "remove", Path: path + "/" + strconv.Itoa(i), Was: was[i]})
	}
	for i := len(was); i < len(now); i++ {
		*to = append(*to, difference{Op: "add", Path: path + "/" + strconv.Itoa(i), Value: now[i]})
	}
}

// same reports whether two values are written alike, but for white space.
func same(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return false
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}

// token is a name in a JSON pointer.
func token(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}
