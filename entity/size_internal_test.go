package entity

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// An activation must stay small: a hundred thousand are in memory at a time.
// What only some entities need is behind a pointer.
func TestAnActivationIsSmall(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(activation{}), uintptr(352))
}
