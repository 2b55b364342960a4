//go:build !linux

package bolt

import "errors"

func playFailingSync(*Store) error { return errors.New("only for Linux") }
