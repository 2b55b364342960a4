package killtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// childEnv has, in a child, the branch that it is to run.
const childEnv = "TWINSRV_KILLTEST_BRANCH"

// branch is a bank that runs in a process of its own.
type branch struct {
	Store string   `json:"store"`
	Where string   `json:"where"`
	Kinds []string `json:"kinds"` // of accounts
	Queue bool     `json:"queue"` // it has a queue of parcels, and no accounts
}

// runChild is the child: commands come in as lines, answers go out, until there
// are no more commands.
func runChild(config string) error {
	var br branch
	if err := json.Unmarshal([]byte(config), &br); err != nil {
		return err
	}
	if br.Queue {
		return runCounter(br)
	}
	store, err := openStore(br.Store, br.Where)
	if err != nil {
		return err
	}
	b, err := openBank(store, br.Kinds, storm, os.Stderr)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	answered := func(a answer) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(a) // an answer that nobody reads was not given
	}
	for in := json.NewDecoder(os.Stdin); ; {
		var c command
		if err := in.Decode(&c); err != nil {
			if err == io.EOF {
				return b.close()
			}
			return err
		}
		b.do(c, answered)
	}
}

// child is such a process.
type child struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan answer // closed when the process has ended
	stderr  strings.Builder
}

func startChild(t *testing.T, binary string, br branch) *child {
	t.Helper()
	config, err := json.Marshal(br)
	require.NoError(t, err)
	c := &child{cmd: exec.Command(binary), answers: make(chan answer, 64)}
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(config))
	c.cmd.Stderr = &c.stderr
	c.in, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	go c.read(out)
	return c
}

// read takes answers up to the last whole line.
func (c *child) read(out io.Reader) {
	defer close(c.answers)
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			a.Error = fmt.Sprintf("it is not one: %s", line)
		}
		c.answers <- a
	}
}

// send gives the child a command. It fails only when the child has ended.
func (c *child) send(cmd command) error {
	line, err := json.Marshal(cmd)
	if err != nil {
		return err
	}
	_, err = c.in.Write(append(line, '\n'))
	return err
}

// kill ends the process as a crash does. What it has answered by then can still
// be read.
func (c *child) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Kill())
}

// quit asks the process to end in good order.
func (c *child) quit(t *testing.T) {
	t.Helper()
	require.NoError(t, c.in.Close())
}

// ended waits for the process, whose answers have been read, and returns how it
// ended. Complaints are what it said that a process must never say.
func (c *child) ended() (complaints []string, err error) {
	err = c.cmd.Wait()
	return complaintsIn(c.stderr.String()), err
}

// complaintsIn returns the lines of a log that are wrong whatever happened: a
// data race, a panic, a message of SendOnce that was refused.
func complaintsIn(log string) (lines []string) {
	for line := range strings.Lines(log) {
		for _, bad := range []string{"DATA RACE", "panic", undelivered} {
			if strings.Contains(line, bad) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}
