package pgtest

import (
	"errors"
	"os/exec"
)

func serverUser() (any, error) { return nil, errors.ErrUnsupported }

func own(string, *exec.Cmd) error { return errors.ErrUnsupported }

func interrupt(int) {}

func killAll(int) {}

func dieWithUs(*exec.Cmd) {}
