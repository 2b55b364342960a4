package actor

import "time"

const (
	waitTest = 10 * time.Second
	tickTest = time.Millisecond
)
