package pgtest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Missing says why no server can be started here. It is empty when one can.
func Missing() string {
	if runtime.GOOS == "windows" {
		return "clusters are not made on Windows"
	}
	if _, err := binaries(); err != nil {
		return err.Error()
	}
	if os.Geteuid() == 0 {
		if _, err := serverUser(); err != nil {
			return err.Error()
		}
	}
	return ""
}

// binaries returns the folder that has initdb and postgres: the newest version
// of the system's packages, or what is on the path.
func binaries() (string, error) {
	var dirs []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"} {
		found, _ := filepath.Glob(pattern)
		slices.SortFunc(found, func(a, b string) int { return -cmp.Compare(versionIn(a), versionIn(b)) })
		dirs = append(dirs, found...)
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	for _, dir := range dirs {
		if executable(filepath.Join(dir, "initdb")) && executable(filepath.Join(dir, "postgres")) {
			return dir, nil
		}
	}
	return "", errors.New("no initdb and postgres in /usr/lib/postgresql/*/bin or on the path: install the package postgresql")
}

// versionIn returns the number of the folder above bin.
func versionIn(dir string) float64 {
	name := filepath.Base(filepath.Dir(dir))
	v, _ := strconv.ParseFloat(strings.TrimPrefix(name, "pgsql-"), 64)
	return v
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func command(bin, name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(bin, name), args...)
	c.Env = append(os.Environ(), "LC_ALL=C", "PGTZ=UTC")
	return c
}

// run executes a command to its end and puts what it said into its error.
func run(c *exec.Cmd) error {
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(c.Path), err, out)
	}
	return nil
}
