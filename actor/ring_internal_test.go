package actor

import (
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever looks without the lock must see what there is after each method: a
// flag that stays behind is a task that nobody runs.
func TestARingSaysAfterEachMethodWhetherItHasAny(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	var stocked atomic.Int32
	a, b := &ring{stocked: &stocked}, &ring{stocked: &stocked}
	var global backlog
	inside := map[*Ref]bool{}
	enter := func() *Ref { r := &Ref{}; inside[r] = true; return r }
	leave := func(r *Ref) {
		if r != nil {
			require.True(t, inside[r], "twice, or never put in")
			delete(inside, r)
		}
	}
	for range 20_000 {
		switch dice.IntN(6) {
		case 0, 1:
			for _, r := range a.put(enter()) {
				leave(r)
			}
		case 2:
			n := dice.IntN(40)
			for range n {
				global.push(enter())
			}
			a.fill(&global, n)
			for r := global.pop(); r != nil; r = global.pop() {
				leave(r)
			}
		case 3:
			leave(a.take())
		case 4:
			leave(a.exchange(enter()))
		case 5:
			leave(b.rob(a))
			for !b.empty() {
				leave(b.take())
			}
		}
		require.Equal(t, a.n > 0, a.some.Load())
		require.Equal(t, b.n > 0, b.some.Load())
		some := int32(0)
		for _, q := range []*ring{a, b} {
			if q.n > 0 {
				some++
			}
		}
		require.Equal(t, some, stocked.Load())
		require.Len(t, inside, a.n+b.n)
	}
}

// Only ring.go touches a ring's fields, and all its methods end with unlock.
func TestARingIsLockedOnlyInItsFile(t *testing.T) {
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	outside := regexp.MustCompile(`\bring\.(mu|buf|head|n|some|push|pop|unlock)\b`)
	for _, f := range files {
		if name := f.Name(); strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, "ring") {
			src, err := os.ReadFile(name)
			require.NoError(t, err)
			require.Empty(t, outside.FindString(string(src)), name)
		}
	}
	src, err := os.ReadFile("ring.go")
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(src), "mu.Unlock()"), "the one in unlock")
}
