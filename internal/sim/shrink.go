package sim

// Shrink looks for few steps of a plan that still fail. fails runs the plan with
// the steps that keep says yes to. It drops ever smaller runs of steps for as
// long as that leaves a failure (the algorithm is Zeller's ddmin, without its
// complements), and returns the places of the steps that are left.
func Shrink(steps int, fails func(keep func(int) bool) bool) []int {
	left := make([]int, steps)
	for i := range left {
		left[i] = i
	}
	for size := max(steps/2, 1); ; {
		dropped := false
		for from := 0; from < len(left); {
			less := append(append([]int{}, left[:from]...), left[min(from+size, len(left)):]...)
			if fails(Only(less)) {
				left, dropped = less, true
				continue
			}
			from += size
		}
		switch {
		case size > 1:
			size /= 2
		case !dropped:
			return left
		}
	}
}

// Only returns the keep of a Run that has these steps alone.
func Only(steps []int) func(int) bool {
	kept := make(map[int]bool, len(steps))
	for _, s := range steps {
		kept[s] = true
	}
	return func(s int) bool { return kept[s] }
}
