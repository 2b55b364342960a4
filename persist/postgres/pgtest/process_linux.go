package pgtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// dieWithUs makes the server end when this process is killed. It counts for the
// thread that starts the server, which must live as long.
func dieWithUs(c *exec.Cmd) { c.SysProcAttr.Pdeathsig = syscall.SIGQUIT }

// children returns the processes whose parent is pid.
func children(pid int) []int {
	var found []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// pid (name) state ppid: the name may hold anything.
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(pid) {
			continue
		}
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			found = append(found, child)
		}
	}
	return found
}
