package filter

// Instructions is what patterns are measured by.
var Instructions = instructions

// Caught runs f as Compile does what it does.
func Caught(f func()) (err error) {
	defer caught(&err)
	f()
	return nil
}
