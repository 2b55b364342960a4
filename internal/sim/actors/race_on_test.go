//go:build race

package actors_test

// raceDivisor is how much less is done under the race detector, which makes it
// so much slower.
const raceDivisor = 10
