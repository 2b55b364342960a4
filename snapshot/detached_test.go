package snapshot

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// keeper keeps the bytes that it is given.
type keeper struct{ b []byte }

func (k keeper) MarshalBinary() ([]byte, error)     { return k.b, nil }
func (k *keeper) UnmarshalBinary(data []byte) error { k.b = data; return nil }

func TestDecodedValuesShareNoMemoryWithTheirInput(t *testing.T) {
	type state struct {
		Bytes []byte
		Text  string
		Own   keeper
	}
	in := state{Bytes: []byte("bytes"), Text: "text", Own: keeper{[]byte("own")}}
	c := Msgpack()
	data, err := c.Append(nil, in)
	require.NoError(t, err)
	var out state
	require.NoError(t, c.Decode(data, &out))
	var tree map[string]any
	require.NoError(t, c.Decode(data, &tree))
	clear(data)
	require.Equal(t, in, out)
	require.Equal(t, map[string]any{"Bytes": []byte("bytes"), "Text": "text", "Own": []byte("own")}, tree)
}

func TestDecodeRefusesShortArraysAndRepeatedKeys(t *testing.T) {
	c := Msgpack()
	var array [2]int
	require.ErrorContains(t, c.Decode([]byte{0x91, 1}, &array), "has 1 elements, want 2")
	var tree map[string]any
	require.ErrorContains(t, c.Decode([]byte{0x82, 0xa1, 'x', 1, 0xa1, 'x', 2}, &tree), "map has the same key twice")
}
