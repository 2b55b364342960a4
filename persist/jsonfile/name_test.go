package jsonfile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/twinsrv/twinsrv/persist"
)

func TestNamesOfFilesAreReadableAndSafe(t *testing.T) {
	for name, want := range map[string]string{
		"tower-3_21.b": "tower-3_21.b", "AHU-1": "!a!h!u-1", "..": "%2e%2e", ".a.": "%2ea%2e", "a/b": "a%2fb", "a b": "a%20b",
		"é": "%c3%a9", "con": "%63on", "Con": "!con", "nul.txt": "%6eul.txt", "com1": "%63om1", "com10": "com10", "!": "%21", "~": "%7e",
	} {
		require.Equal(t, want, stem(name))
		back, ok := unstem(want)
		require.True(t, ok)
		require.Equal(t, name, back)
	}
	for _, bad := range []string{"A", "%41", "%2F", "a!", "%", ".a", "a ", "con", "!1"} {
		_, ok := unstem(bad)
		require.False(t, ok, "%q is no file of this store", bad)
	}
}

func TestNoTwoNamesShareAFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.OneOf(rapid.String(), rapid.StringMatching(`[aA~!%.]{1,6}`), rapid.StringMatching(`[aAé]{150,260}`)).Draw(t, "name")
		s := stem(a)
		require.Equal(t, strings.ToLower(s), s)
		require.LessOrEqual(t, len(s), maxStem)
		for _, c := range []byte(s) {
			require.True(t, c > ' ' && c < 0x7f && !strings.ContainsRune(`/\:*?"<>|`, rune(c)))
		}
		if !hashed(s) {
			back, ok := unstem(s)
			require.True(t, ok)
			require.Equal(t, a, back)
		}
		b := a + "A"
		require.NotEqual(t, s, stem(b))
		require.NotEqual(t, stem(strings.ToUpper(b)), stem(strings.ToLower(b)))
	})
}

func TestLongNamesWorkAndAreKnownFromBesideTheFile(t *testing.T) {
	dir := t.TempDir()
	k := persist.Key{Pod: strings.Repeat("Pod", 85), Name: strings.Repeat("É", 512)}
	s := mustOpen(t, dir, Config{})
	o := mustCommit(t, s, create(k, `"x"`))
	require.NoError(t, s.Close())
	change(t, entityPath(dir, k), func(b []byte) []byte { return make([]byte, len(b)) })
	s = mustOpen(t, dir, Config{})
	page, err := s.List(ctx, k.Pod, persist.ListOptions{})
	require.NoError(t, err)
	require.Len(t, page.Items, 1)
	require.Equal(t, k.Name, page.Items[0].Name)
	require.Error(t, page.Items[0].Err)
	mustCommit(t, s, persist.Unit{Key: k, Life: o[0].Life, Delete: true, Force: true})
	require.NoError(t, s.Close())
	s = mustOpen(t, dir, Config{})
	page, err = s.List(ctx, k.Pod, persist.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, page.Items)
	require.NoError(t, s.Close())
}
