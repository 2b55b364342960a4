//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// serverUser is whom the server runs as when the tests run as root, whom it
// refuses.
func serverUser() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			continue
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			continue
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: false}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody")
}

// own gives a folder to whoever runs the server, and makes the command run so.
func own(dir string, c *exec.Cmd) error {
	if c.SysProcAttr == nil {
		c.SysProcAttr = &syscall.SysProcAttr{}
	}
	c.Dir = dir
	if os.Geteuid() != 0 {
		return nil
	}
	who, err := serverUser()
	if err != nil {
		return err
	}
	c.SysProcAttr.Credential = who
	if err := os.Chown(dir, int(who.Uid), int(who.Gid)); err != nil {
		return fmt.Errorf("give the cluster's folder away: %w", err)
	}
	return nil
}

func interrupt(pid int) { _ = syscall.Kill(pid, syscall.SIGINT) }

// killAll kills a server and all its processes. Each of these has a group of its
// own; those that are not found end when they notice that the server has.
func killAll(pid int) {
	_ = syscall.Kill(pid, syscall.SIGSTOP) // it starts no more
	for _, child := range children(pid) {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
}
