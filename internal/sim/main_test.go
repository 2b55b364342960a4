package sim_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain looks for goroutines that are left. A search for an order that was
// given up ends behind that: its steps are long where many operations have no
// outcome, so it is looked for more than once.
func TestMain(m *testing.M) {
	code := m.Run()
	err := goleak.Find()
	for range 30 {
		if err == nil {
			break
		}
		err = goleak.Find()
	}
	if err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
