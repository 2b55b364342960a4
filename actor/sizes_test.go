//go:build !race

package actor_test

// How much the large tests do.
const (
	scenarioSeeds = 10_000
	manyAsks      = 1_000_000
	manyActors    = 200_000
)
