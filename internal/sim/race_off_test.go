//go:build !race

package sim_test

const raceDivisor = 1
