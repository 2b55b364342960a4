package snapshot

import (
	"fmt"
	"maps"
	"slices"
)

// Upgrade edits a decoded state in place, from one schema version to the next.
//
// With the msgpack codec the state holds nil, bool, int64 (uint64 above its
// range), float32, float64, string, []byte, time.Time, []any, map[string]any,
// map[any]any for maps with other plain keys, and msgpack.RawMessage for maps
// whose keys are structs or arrays. With the JSON codec it holds nil, bool,
// json.Number, string, []any and map[string]any. An upgrade may put in any
// value of a type that the codec's Check accepts.
type Upgrade func(state map[string]any) error

// Upgrades holds a type's upgrades by the version they start from.
//
// A version needs an upgrade only where adding or removing fields is not
// enough. Versions before the first and after the last upgrade are taken to be
// such; between two upgrades each version must have its own, and a nil Upgrade
// says that nothing is to be done.
type Upgrades map[uint32]Upgrade

// Apply carries state that was encoded with c at version from to version to.
// Without an upgrade on the way it returns data itself.
//
// It returns ErrNewer when from is above to, and an error that names the
// version when an upgrade is missing or fails.
func (u Upgrades) Apply(c Codec, data []byte, from, to uint32) ([]byte, error) {
	if from > to {
		return nil, fmt.Errorf("state has schema version %d, this program knows up to %d: %w", from, to, ErrNewer)
	}
	steps, err := u.steps(from, to)
	if err != nil || len(steps) == 0 {
		return data, err
	}
	var state map[string]any
	if err := c.Decode(data, &state); err != nil {
		return nil, fmt.Errorf("reading state of schema version %d: %w", from, err)
	}
	if state == nil {
		return nil, fmt.Errorf("state of schema version %d is nil: upgrades need an object", from)
	}
	for _, v := range steps {
		if err := u[v](state); err != nil {
			return nil, fmt.Errorf("upgrading state from schema version %d to %d: %w", v, v+1, err)
		}
	}
	out, err := c.Append(nil, state)
	if err != nil {
		return nil, fmt.Errorf("writing state of schema version %d: %w", to, err)
	}
	return out, nil
}

// Check returns an error for an upgrade that would never run, since it starts
// from the type's present version or a later one: old states would be read
// without it.
func (u Upgrades) Check(version uint32) error {
	for _, from := range slices.Sorted(maps.Keys(u)) {
		if from >= version {
			return fmt.Errorf("the upgrade from schema version %d would never run, since the present version is %d: "+
				"an upgrade stands under the version that it starts from; raise the version to %d, or mend its key", from, version, uint64(from)+1)
		}
	}
	return nil
}

// steps returns the versions in [from, to) that have something to do, in order.
func (u Upgrades) steps(from, to uint32) ([]uint32, error) {
	if len(u) == 0 || from == to {
		return nil, nil
	}
	first, last := uint32(1<<32-1), uint32(0)
	for v := range u {
		first, last = min(first, v), max(last, v)
	}
	var steps []uint32
	for v := uint64(max(from, first)); v < uint64(to) && v <= uint64(last); v++ {
		step, ok := u[uint32(v)]
		if !ok {
			return nil, fmt.Errorf("upgrade from schema version %d to %d is missing: add it, as nil when there is nothing to do", v, v+1)
		}
		if step != nil {
			steps = append(steps, uint32(v))
		}
	}
	return steps, nil
}
