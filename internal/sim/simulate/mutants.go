package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/internal/mutant"
)

// mutants builds this program with the mutants in it, has each hunted from a
// base of its own, and prints how many seeds it took to find it.
func (o *options) mutants(ctx context.Context) bool {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		fmt.Println(err)
		return false
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "simulate")
	build := exec.CommandContext(ctx, "go", "build", "-tags", "mutants", "-o", binary, "./internal/sim/simulate")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Printf("build with the mutants, from the root of the module: %v\n%s", err, out)
		return false
	}
	fmt.Printf("%-26s %-8s %8s %8s  %s\n", "mutant", "package", "seeds", "s", "what it breaks")
	found, all := 0, 0
	for _, m := range mutant.All() {
		if o.Mutant != "" && o.Mutant != string(m.Name) {
			continue
		}
		all++
		begin := time.Now()
		seeds, err := o.find(ctx, binary, m.Name)
		text := strconv.Itoa(seeds)
		switch {
		case err != nil:
			text = err.Error()
		case seeds == 0:
			text = "MISSED"
		default:
			found++
		}
		fmt.Printf("%-26s %-8s %8s %8.1f  %s\n", m.Name, m.Package, text, time.Since(begin).Seconds(), m.Breaks)
	}
	fmt.Printf("%d of %d mutants found\n", found, all)
	return found == all
}

// find returns how many seeds it took to find a mutant, 0 if it was not found.
func (o *options) find(ctx context.Context, binary string, name mutant.Name) (int, error) {
	only := "entities"
	if m := packageOf(name); m == "actor" {
		only = "all"
	}
	hunt := exec.CommandContext(ctx, binary, "--digest", "--stop=1", "--only="+only, fmt.Sprintf("--seeds=%d", o.Seeds), fmt.Sprintf("--within=%s", o.Within))
	hunt.Env = append(os.Environ(), mutant.Variable+"="+string(name))
	out, err := hunt.Output()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}

func packageOf(name mutant.Name) string {
	for _, m := range mutant.All() {
		if m.Name == name {
			return m.Package
		}
	}
	return ""
}
