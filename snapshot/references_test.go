package snapshot

import (
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestHoldsReferences(t *testing.T) {
	type flat struct {
		A int
		B string
		C [3]float64
		D time.Time
		E struct{ F bool }
		g uint8
	}
	_ = flat{}.g
	type hidden struct{ m map[string]int }
	_ = hidden{}.m
	type list struct{ Next *list }
	for _, v := range []any{1, "s", 1.5, true, time.Time{}, time.Second, flat{}, [2]flat{},
		[0]*int{}, struct{}{}, complex(1, 2), uintptr(1)} {
		require.False(t, HoldsReferences(reflect.TypeOf(v)), "%T", v)
	}
	for _, v := range []any{[]int{}, map[int]int{}, new(int), make(chan int), func() {}, hidden{},
		list{}, [1][]int{}, struct{ A any }{}, struct{ A [2]struct{ B *time.Time } }{},
		unsafe.Pointer(nil)} {
		require.True(t, HoldsReferences(reflect.TypeOf(v)), "%T", v)
	}
	require.True(t, HoldsReferences(reflect.TypeFor[any]()))
	require.True(t, HoldsReferences(reflect.TypeFor[error]()))
	require.False(t, HoldsReferences(nil))
}
