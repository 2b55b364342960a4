//go:build unix && !linux

package pgtest

import "os/exec"

func dieWithUs(*exec.Cmd) {}

func children(int) []int { return nil }
