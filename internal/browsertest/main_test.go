package browsertest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// look is the pause between two looks at what is waited for.
const look = 25 * time.Millisecond

// patience is how long a test waits for what must come. A machine with too much
// to do may take long; nothing is waited for that is there already.
var patience = flag.Duration("patience", 90*time.Second, "how long a test waits for what must come")

func TestMain(m *testing.M) {
	code := m.Run()
	if err := errors.Join(theBrowser.close(), built.remove()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
