//go:build race

package killtest

// raceDivisor makes the kills fewer under the race detector, with which
// processes start and work several times slower.
const raceDivisor = 4
