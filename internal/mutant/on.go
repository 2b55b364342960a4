//go:build mutants

package mutant

import (
	"fmt"
	"os"
	"strings"
)

// active is the fault of this process, set once before main; "" is none.
var active = chosen(os.Getenv(Variable))

// On reports whether a fault is the one that TWINSRV_MUTANT chose.
func On(n Name) bool { return n == active }

// chosen returns the fault of a name; "" stands for none. It panics, with the
// list, when there is none of that name: a run that looks for a fault that is
// not there would find nothing and say that all is well.
func chosen(name string) Name {
	names := make([]string, 0, len(All()))
	for _, m := range All() {
		names = append(names, string(m.Name))
		if string(m.Name) == name {
			return m.Name
		}
	}
	if name != "" {
		panic(fmt.Sprintf("%s=%s: there is no such fault; there are: %s", Variable, name, strings.Join(names, ", ")))
	}
	return ""
}
