//go:build race

package browsertest

// raced says that the race detector slows the test's own work down several
// times. The servers and the browser run without it.
const raced = true
