//go:build !race

package pod_test

const raceDivisor = 1
