//go:build !race

package actors_test

const raceDivisor = 1
