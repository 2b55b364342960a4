package killtest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/persist"
)

// parcel is a job. Of some the first attempts fail.
type parcel struct {
	N     int `json:"n"`
	Fails int `json:"fails,omitempty"`
}

// posted is what a process says of a parcel.
type posted struct {
	N       int    `json:"n"`
	What    string `json:"what"` // accepted, refused, begun or done
	Job     string `json:"job,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Error   string `json:"error,omitempty"`
}

// counter is a queue of parcels on a store, in this process. say is called on
// any goroutine, and what it is told has happened when it returns.
type counter struct {
	sys       *actor.System
	committer *persist.Committer
	store     persist.PersistenceService
	queue     *actor.Ref
	say       func(posted)
}

func openCounter(br branch, log io.Writer, say func(posted)) (*counter, error) {
	store, err := openStore(br.Store, br.Where)
	if err != nil {
		return nil, err
	}
	c := &counter{store: store, say: say}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError}))
	c.sys = actor.NewSystem("counter", actor.Config{Logger: logger})
	c.committer = persist.NewCommitter(c.sys, store, persist.CommitterConfig{KeepChanges: 300, MinBackoff: time.Millisecond})
	c.queue, err = c.sys.Spawn("parcels", persist.PersistentServiceManager[parcel]{
		Name: "parcels", Slots: 4, MaxAttempts: 1000, MinBackoff: time.Millisecond, MaxBackoff: 4 * time.Millisecond,
		Committer: c.committer, Work: c.deliver,
	}.Props())
	return c, err
}

// deliver is what is done about a parcel.
func (c *counter) deliver(_ context.Context, j persist.Job[parcel]) error {
	p := posted{N: j.Payload.N, What: "begun", Job: j.ID, Attempt: j.Attempt}
	c.say(p)
	if j.Attempt <= j.Payload.Fails {
		return errors.New("nobody is at home")
	}
	p.What = "done"
	c.say(p)
	return nil
}

func (c *counter) take(p parcel) {
	reply := c.sys.OnReply(func(v any, err error) {
		if err != nil {
			c.say(posted{N: p.N, What: "refused", Error: err.Error()})
			return
		}
		c.say(posted{N: p.N, What: "accepted", Job: v.(persist.JobAccepted).ID})
	})
	if err := c.queue.Post(actor.Message{Payload: p, Reply: reply}); err != nil {
		reply.Fail(err)
	}
}

func (c *counter) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return errors.Join(c.sys.Stop(ctx), c.committer.Close(ctx), c.store.Close())
}

// runCounter is the child: parcels come in as lines, and what becomes of them
// goes out.
func runCounter(br branch) error {
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	c, err := openCounter(br, os.Stderr, func(p posted) {
		mu.Lock()
		defer mu.Unlock()
		_ = out.Encode(p)
	})
	if err != nil {
		return err
	}
	for in := json.NewDecoder(os.Stdin); ; {
		var p parcel
		if err := in.Decode(&p); err != nil {
			return c.close()
		}
		c.take(p)
	}
}

// post gives parcels to processes, and remembers what it was told.
type post struct {
	given    int
	open     map[int]bool // given to the process that runs, and not answered
	accepted map[int]string
	attempts map[int][]int // those that began
	done     map[int]int
	now      map[string]bool // done by the process that runs
	wrong    []string
}

func (p *post) complain(format string, args ...any) {
	p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
}

func (p *post) take(m posted) {
	switch m.What {
	case "accepted":
		delete(p.open, m.N)
		p.accepted[m.N] = m.Job
	case "refused":
		p.complain("parcel %d was refused: %s", m.N, m.Error)
	case "begun":
		if n := p.attempts[m.N]; len(n) > 0 && n[len(n)-1] >= m.Attempt {
			p.complain("attempt %d at parcel %d comes behind %v", m.Attempt, m.N, n)
		}
		p.attempts[m.N] = append(p.attempts[m.N], m.Attempt)
		if p.now[m.Job] {
			p.complain("parcel %d was delivered, and then given out again by the same process", m.N)
		}
	case "done":
		p.done[m.N]++
		p.now[m.Job] = true
	default:
		p.complain("it says %+v", m)
	}
}

// run gives parcels to a process until it is killed, after so many things that
// it has said or so much time.
func (p *post) run(t *testing.T, binary string, br branch, said int, after time.Duration) {
	t.Helper()
	config, err := json.Marshal(br)
	require.NoError(t, err)
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), childEnv+"="+string(config))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	alarm := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	p.open, p.now = map[int]bool{}, map[string]bool{}
	give := func() {
		for len(p.open) < outstanding {
			g := parcel{N: p.given, Fails: max(p.given%8-5, 0)}
			p.given++
			p.open[g.N] = true
			line, _ := json.Marshal(g)
			if _, err := in.Write(append(line, '\n')); err != nil {
				return // it has ended
			}
		}
	}
	give()
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var m posted
		if json.Unmarshal(line, &m) != nil {
			p.complain("it says %s", line)
			continue
		}
		p.take(m)
		if said--; said <= 0 {
			require.NoError(t, cmd.Process.Kill())
			continue // to the end of what it said
		}
		give()
	}
	alarm.Stop()
	err = cmd.Wait()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, -1, exit.ExitCode(), "the process ended by itself: %v: %s", err, &stderr)
	p.wrong = append(p.wrong, complaintsIn(stderr.String())...)
}

// emptying bounds the wait for a queue to be empty. A store in JSON files writes
// all jobs that wait with each that comes or goes, and takes some time.
const emptying = 5 * time.Minute

// finish runs the queue in this process until it is empty, and compares what was
// accepted with what was done.
func (p *post) finish(t *testing.T, br branch) {
	t.Helper()
	p.now = map[string]bool{}
	var mu sync.Mutex
	var log lines
	c, err := openCounter(br, &log, func(m posted) {
		mu.Lock()
		defer mu.Unlock()
		p.take(m)
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		rows, err := c.store.Rows(context.Background(), "job", nil, 1)
		return err == nil && len(rows) == 0
	}, emptying, 50*time.Millisecond)
	require.NoError(t, c.close(), &log)
	p.wrong = append(p.wrong, complaintsIn(log.String())...)
	of := map[string]int{}
	for n, id := range p.accepted {
		if other, taken := of[id]; taken {
			p.complain("parcels %d and %d are both job %s", n, other, id)
		}
		of[id] = n
		if p.done[n] == 0 {
			p.complain("parcel %d was accepted as job %s and never delivered; attempts %v", n, id, p.attempts[n])
		}
	}
}

// parcels kills processes until so many are killed, or something is wrong.
func parcels(t *testing.T, binary string, br branch, kills, every int) (done int, wrong []string) {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	d := newDriver(seed, []string{"-"}, 0) // for its dice
	p := &post{accepted: map[int]string{}, attempts: map[int][]int{}, done: map[int]int{}}
	for done < kills && len(p.wrong) == 0 {
		said, after := 1+d.rng.IntN(400), patience
		if d.rng.IntN(3) == 0 {
			said, after = 1<<30, time.Duration(d.rng.IntN(100))*time.Millisecond
		}
		p.run(t, binary, br, said, after)
		killed.Add(1)
		if done++; done%every == 0 || done == kills {
			p.finish(t, br)
		}
	}
	again := 0
	for n := range p.done {
		again += p.done[n] - 1
	}
	t.Logf("%d kills: %d parcels accepted of %d, %d delivered again", done, len(p.accepted), p.given, again)
	return done, p.wrong
}

// TestQueueOverKills: every job that was accepted is done, and each time that a
// job is given out its attempt is higher, over kills at any moment.
func TestQueueOverKills(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	for store, usual := range map[string]int{"bolt": 20, "bolt-alone": 10, "json": 12, "postgres": 10} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			kills := rounds(t, usual)
			done, wrong := parcels(t, self, branch{Store: store, Where: place(t, store), Queue: true}, kills, 5)
			require.Empty(t, wrong)
			require.Equal(t, kills, done)
		})
	}
}

// queueBreaks are changes to package persist that TestQueueOverKills must find.
var queueBreaks = map[string]struct {
	file string
	edit [2]string
}{
	"a job is accepted before it is durable": {"persist/persistentservicehost.go", [2]string{
		"\th.coming[j] = slot\n",
		"\th.coming[j] = slot\n\th.accept(ctx, j)\n",
	}},
	"an attempt is not counted": {"persist/persistentservicehost.go", [2]string{
		"\trow := op.job.row()\n",
		"\trow := op.job.row()\n\tif op.step == begins {\n\t\tr := op.job.record\n\t\tr.Revision--\n\t\trow.Value = r.Append(nil)\n\t}\n",
	}},
	"an attempt begins before it is counted": {"persist/persistentservicehost.go", [2]string{
		"\t\th.submit(jobOp{j, begins})\n",
		"\t\th.submit(jobOp{j, begins})\n\t\th.run(ctx, j)\n",
	}},
	"a job is removed when it begins": {"persist/persistentserviceworker.go", [2]string{
		"\th.running[worker] = j\n",
		"\th.running[worker] = j\n\th.submit(jobOp{j, leaves})\n",
	}},
}

// TestQueueFindsWhatIsBroken: the test of the queue finds each of these faults.
// It compiles a lot, so it is part of the long form alone.
func TestQueueFindsWhatIsBroken(t *testing.T) {
	if os.Getenv("TWINSRV_KILLS") == "" {
		t.Skip("part of the long form: set TWINSRV_KILLS to the kills in each test, for example 200")
	}
	for name, b := range queueBreaks {
		t.Run(name, func(t *testing.T) {
			binary := compile(t, []string{"test", "-c"}, "./internal/killtest", b.file, [][2]string{b.edit})
			kills, wrong := parcels(t, binary, branch{Store: "bolt", Where: place(t, "bolt"), Queue: true}, 60, 1)
			require.NotEmpty(t, wrong, "%d kills found nothing", kills)
			t.Logf("found after %d kills: %s", kills, wrong[0])
		})
	}
}
