package actor

import (
	"reflect"
	"runtime"
)

// onStack says whether a function, which is not inlined, is under way on the calling
// goroutine. It takes microseconds.
func onStack(f any) bool {
	entry := reflect.ValueOf(f).Pointer()
	var pcs [64]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		if n == 0 {
			return false
		}
		frames := runtime.CallersFrames(pcs[:n])
		for {
			frame, more := frames.Next()
			if frame.Entry == entry {
				return true
			}
			if !more {
				break
			}
		}
		if n < len(pcs) {
			return false
		}
	}
}
