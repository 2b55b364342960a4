package actors_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"sort"
	"testing"
	"time"

	"github.com/twinsrv/twinsrv/internal/sim/actors"
)

func TestSurvey(t *testing.T) {
	if os.Getenv("SURVEY") == "" {
		t.Skip()
	}
	re := regexp.MustCompile(`/user\S*|\d+|(job|out|pill|ask|select|promise|future)\d*`)
	count, eg := map[string]int{}, map[string]string{}
	start := time.Now()
	bad, slow := 0, time.Duration(0)
	n := seeds(t)
	for seed := first(t); seed < first(t)+n; seed++ {
		func() {
			defer func() {
				if v := recover(); v != nil {
					count[fmt.Sprint("PANIC ", v)]++
					eg[fmt.Sprint("PANIC ", v)] = fmt.Sprint(seed)
				}
			}()
			at := time.Now()
			r := actors.Run(seed, nil, nil)
			if d := time.Since(at); d > slow {
				slow = d
				fmt.Println("slowest", seed, d)
			}
			if len(r.Wrong) > 0 {
				bad++
				k := re.ReplaceAllString(r.Wrong[0], "#")
				count[k]++
				eg[k] = fmt.Sprintf("seed %d: %s", seed, r.Wrong[0])
			}
		}()
	}
	fmt.Println("bad", bad, "of", n, time.Since(start)/time.Duration(n), "each")
	var ks []string
	for k := range count {
		ks = append(ks, k)
	}
	sort.Slice(ks, func(i, j int) bool { return count[ks[i]] > count[ks[j]] })
	for i, k := range ks {
		if i < 25 {
			fmt.Println(count[k], eg[k])
		}
	}
}

// TestShrink prints the smallest trace of SEED that is still wrong in the same way.
func TestShrink(t *testing.T) {
	var seed uint64
	if _, err := fmt.Sscan(os.Getenv("SEED"), &seed); err != nil {
		t.Skip()
	}
	re := regexp.MustCompile(`/user\S*|\d+`)
	r := actors.Run(seed, nil, nil)
	if len(r.Wrong) == 0 {
		fmt.Println("fine")
		return
	}
	want := re.ReplaceAllString(r.Wrong[0], "#")
	drop := map[int]bool{}
	keep := func(s int) bool { return !drop[s] }
	for changed := true; changed; {
		changed = false
		for i := r.Steps - 1; i >= 0; i-- {
			if drop[i] {
				continue
			}
			drop[i] = true
			x := actors.Run(seed, keep, nil)
			if len(x.Wrong) > 0 && re.ReplaceAllString(x.Wrong[0], "#") == want {
				changed = true
			} else {
				delete(drop, i)
			}
		}
	}
	var log bytes.Buffer
	x := actors.Run(seed, keep, &log)
	fmt.Println(log.String())
	fmt.Println(x.Wrong)
}
