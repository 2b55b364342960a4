package sim

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/twinsrv/twinsrv/pod"
)

// twin is an entity as a query may show it: as somebody has read it, or as the
// model of its history has it.
type twin struct {
	pod, name string
	life      uint64
	revision  uint64
	state     any // its JSON; of one that was read

	model  bool
	log    string // the model's
	unsure bool   // something was asked of the model that it does not know
}

// absent is what stands at a path where there is nothing.
type absent struct{}

func read(v *pod.View) (*twin, error) {
	t := &twin{pod: v.Pod, name: v.Name, life: v.Life, revision: v.Revision}
	text, err := v.JSON()
	if err == nil {
		err = json.Unmarshal(text, &t.state)
	}
	return t, err
}

// modelled is an entity as a state of its history's model.
func modelled(pod, name string, s state) *twin {
	return &twin{pod: pod, name: name, life: s.life, revision: s.revision, model: true, log: s.log}
}

// at returns what stands at a path: nil for null, absent for nothing.
func (t *twin) at(path string) any {
	switch path {
	case "pod":
		return t.pod
	case "name":
		return t.name
	case "revision":
		return float64(t.revision)
	case "life":
		t.unsure = t.unsure || t.life == 0
		return float64(t.life)
	}
	if t.model {
		return t.modelAt(path)
	}
	v := t.state
	for _, step := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) })[1:] {
		switch in := v.(type) {
		case map[string]any:
			next, there := in[step]
			if !there {
				return absent{}
			}
			v = next
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n >= len(in) {
				return absent{}
			}
			v = in[n]
		default:
			return absent{}
		}
	}
	return v
}

// modelAt knows the states of entities with a log.
func (t *twin) modelAt(path string) any {
	entries := strings.Fields(t.log)
	switch {
	case path == "state.made":
		return true
	case path == "state.log[0]" && len(entries) > 0:
		return entries[0]
	case path == "state.last[0]" && len(entries) > 0 && t.pod != books:
		return entries[len(entries)-1]
	}
	return absent{}
}

// entries is how many entries the log has; -1 if there is none.
func (t *twin) entries() int {
	if t.model {
		return len(strings.Fields(t.log))
	}
	list, is := t.at("state.log").([]any)
	if !is {
		return -1
	}
	return len(list)
}

func (t *twin) number(path string) (float64, bool) {
	n, is := t.at(path).(float64)
	return n, is
}

func (t *twin) text(path string) (string, bool) {
	s, is := t.at(path).(string)
	return s, is
}

func (t *twin) yes(path string) bool { return t.at(path) == true }

func rank(v any) int {
	switch v.(type) {
	case absent:
		return 0
	case nil:
		return 1
	case bool:
		return 2
	case float64:
		return 3
	case string:
		return 4
	}
	return 5
}

// compareValues is the order of filter.Value, over what stands at paths.
func compareValues(a, b any) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	switch a := a.(type) {
	case bool:
		n := map[bool]int{true: 1}
		return cmp.Compare(n[a], n[b.(bool)])
	case float64:
		return cmp.Compare(a, b.(float64))
	case string:
		return strings.Compare(a, b.(string))
	case absent, nil:
		return 0
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return strings.Compare(string(x), string(y))
}
