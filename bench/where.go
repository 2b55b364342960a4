package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/pprof"
	"time"

	"github.com/google/pprof/profile"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// stage is a part of a durable command's way, told by the functions that it
// calls: of a sample's frames, from the innermost out, the first that some
// stage's pattern matches decides.
type stage struct {
	name, what string
	frames     *regexp.Regexp
}

func stages() []stage {
	var out []stage
	for _, s := range [][3]string{
		{"gc", "garbage collection beside", `^runtime\.(gcBgMarkWorker|bgsweep|bgscavenge)`},
		{"encode", "the state, canonically", `snapshot\.\(\*(msgpackCodec|jsonCodec)\)\.Append`},
		{"fold", "from the log into the store behind", `commitlog\.\(\*Store\)\.(background|foldDue|foldStep)|bolt\.\(\*Store\)\.Fold`},
		{"log", "judge, append, sync (its system calls), note", `commitlog\.\(\*Store\)\.Commit`},
		{"committer", "queue and group", `persist\.\(\*Committer\)\.(run|submit)|persist\.\(\*Lane\)\.`},
		{"release", "outcome, view, replies", `entity\.\(\*activation\)\.(ReceiveSystem|settle|release)`},
		{"turn", "handler, comparison, unit", `entity\.\(\*activation\)`},
		{"runtime", "mailboxes, scheduling of turns", `actor\.\(\*worker\)|actor\.\(\*dispatcher\)|actor\.\(\*Ref\)\.turn`},
		{"ask", "the callers' side", `entity\.Ask|main\.crowd`},
		{"switch", "between goroutines", `^runtime\.(mcall|mstart|schedule|park_m|goexit0|findRunnable|sysmon|systemstack)`},
	} {
		out = append(out, stage{s[0], s[1], regexp.MustCompile(s[2])})
	}
	return append(out, stage{"other", "everything else", regexp.MustCompile("")})
}

// where has 256 senders command as many entities, far apart among a million
// behind a commit log, and prints where the processors' time of a command goes,
// and how long a command waits.
func where(period time.Duration, dir string, out io.Writer) (err error) {
	if dir, err = os.MkdirTemp(dir, "twinsrv-where-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := fillStore(boltPath(dir), million); err != nil {
		return err
	}
	store, err := openLogged(dir)
	if err != nil {
		return err
	}
	return withPods(store, pod.Config{}, func(ctx context.Context, all *pod.Pods, h *pod.Handle[meter]) error {
		load := func(period time.Duration) (float64, error) {
			return crowd(manyEntities, period, func(who, turn int) error {
				_, err := entity.Ask[entity.Ack](ctx, h.Ref(farApart(who)), tick{Celsius: float64(turn)})
				return err
			})
		}
		if _, err := load(time.Second); err != nil { // everybody is in memory then
			return err
		}
		var raw bytes.Buffer
		before := all.Committer().Figures()
		if err := pprof.StartCPUProfile(&raw); err != nil {
			return err
		}
		rate, err := load(period)
		pprof.StopCPUProfile()
		if err != nil {
			return err
		}
		spent, err := attribute(&raw)
		if err != nil {
			return err
		}
		return tell(out, rate, period, spent, before, all.Committer().Figures())
	})
}

// attribute sums a CPU profile up by stages.
func attribute(raw io.Reader) (map[string]time.Duration, error) {
	p, err := profile.Parse(raw)
	if err != nil {
		return nil, err
	}
	spent, all := map[string]time.Duration{}, stages()
	for _, s := range p.Sample {
		spent[stageOf(all, s)] += time.Duration(s.Value[1])
	}
	return spent, nil
}

func stageOf(all []stage, s *profile.Sample) string {
	for _, location := range s.Location {
		for _, line := range location.Line {
			for _, st := range all[:len(all)-1] {
				if st.frames.MatchString(line.Function.Name) {
					return st.name
				}
			}
		}
	}
	return all[len(all)-1].name
}

func tell(out io.Writer, rate float64, period time.Duration, spent map[string]time.Duration, before, after persist.Figures) error {
	commands := rate * period.Seconds()
	var sum time.Duration
	for _, d := range spent {
		sum += d
	}
	commits, units := after.Commits-before.Commits, after.Units-before.Units
	if commits == 0 || commands == 0 {
		return errors.New("nothing was committed")
	}
	inStore := (after.InStore - before.InStore) / time.Duration(commits)
	latency := time.Duration(float64(manyEntities) / rate * float64(time.Second))
	_, err := fmt.Fprintf(out, "# where: %.0f commands a second of %d senders, %.2f processors busy, %d units a commit\n# stage\tns a command\tshare\n",
		rate, manyEntities, sum.Seconds()/period.Seconds(), units/commits)
	for _, s := range stages() {
		_, _ = fmt.Fprintf(out, "where/%s\t%.0f\t%.1f%%\t# %s\n", s.name, float64(spent[s.name])/commands, 100*float64(spent[s.name])/float64(sum), s.what)
	}
	_, _ = fmt.Fprintf(out, "where/latency\t%d\t\t# from ask to answer, of which %d in the store\n", latency.Nanoseconds(), inStore.Nanoseconds())
	return err
}
