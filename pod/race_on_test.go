//go:build race

package pod_test

// raceDivisor makes the many seeds fewer under the race detector, which makes
// each of them ten times slower.
const raceDivisor = 10
