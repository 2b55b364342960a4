//go:build !race

package killtest

const raceDivisor = 1
