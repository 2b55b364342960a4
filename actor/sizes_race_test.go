//go:build race

package actor_test

// How much the large tests do. The race detector makes all of it ten times
// slower.
const (
	scenarioSeeds = 500
	manyAsks      = 50_000
	manyActors    = 20_000
)
