//go:build !mutants

package mutant

// On reports whether a fault is chosen: never, without the build tag.
func On(Name) bool { return false }
