package entity

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckName(t *testing.T) {
	for _, good := range []string{"a", "a/b", "a%2Fb", " ", "con", "😀", "...", strings.Repeat("x", 256), "\x01", "-"} {
		require.NoError(t, CheckName(good), "%q", good)
	}
	for bad, rule := range map[string]string{
		"": "empty", ".": "must not be", "..": "must not be", "a\x00b": "U+0000", "\xff": "UTF-8", strings.Repeat("x", 257): "256 bytes",
	} {
		err := CheckName(bad)
		require.ErrorIs(t, err, ErrName, "%q", bad)
		require.ErrorContains(t, err, rule)
	}
}

func TestCheckPodName(t *testing.T) {
	for _, good := range []string{"a", "0", "rooms", "a.b_c-d", strings.Repeat("a", 64)} {
		require.NoError(t, CheckPodName(good), "%q", good)
	}
	for _, bad := range []string{"", "A", ".a", "-a", "_a", "$pods", "a/b", "ä", "a b", strings.Repeat("a", 65)} {
		require.ErrorIs(t, CheckPodName(bad), ErrName, "%q", bad)
	}
}
