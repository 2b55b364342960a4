package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// follow is about watches: one begins, ends, resumes, or is asked for what it
// must refuse.
const follow kind = "follow"

// maxFollowers is how many there are in a run, at most.
const maxFollowers = 4

// following are those who follow changes, over all processes.
type following struct {
	list []*follower
}

// follower is somebody who follows changes by one watch after the other, each
// of which resumes where the one before it ended.
type follower struct {
	number int
	pods   []string // nil: all
	name   string
	rule   int // that Match goes by; 0: there is none

	begun   bool
	from    uint64 // where it began
	at      uint64 // where it goes on
	through uint64 // it must have seen at the end
	shown   []showing
	w       *process   // of the watch that is open or being opened; a dead one's is not
	watch   *pod.Watch // nil: it is being opened
	resumed bool
	told    bool          // of something, by this watch
	pause   time.Duration // before it asks for the next event
	hasty   bool          // it does not wait long for an event
	short   map[string]entity.ETag
}

// showing is an event that was shown, but for those of volatile pods.
type showing struct {
	at     uint64 // its position, or where a gap ends
	from   uint64 // where a gap begins
	kind   pod.EventKind
	reason pod.GapReason
	unsure bool
}

func (f *follower) String() string {
	return fmt.Sprintf("follower %d of %v %s by rule %d", f.number, f.pods, f.name, f.rule)
}

func (f *follower) request() pod.WatchRequest {
	r := pod.WatchRequest{Pods: f.pods, Name: f.name, Resume: f.begun, After: f.at}
	if f.rule > 0 {
		r.Match = func(v *pod.View) (bool, error) {
			state, err := v.JSON()
			if err != nil {
				return false, err
			}
			return ruled(f.rule, state)
		}
	}
	return r
}

// planFollow draws what is done to a follower, or a new one.
func planFollow(p *plan, rng *rand.Rand) step {
	s := step{n: rng.IntN(12), op: choose(rng, "begin", "begin", "resume", "resume", "resume", "resume", "close", "close", "let go", "let go", "odd")}
	if s.op == "begin" {
		s.pod = choose(rng, things, things, books, beats, frail, papers, accounts, purses, scratch, "")
		if s.pod != "" && rng.IntN(2) == 0 {
			s.name = p.anyName(rng)
		}
		s.to = choose(rng, "", "", things, purses, accounts, scratch) // one pod more
		s.d = choose(rng, 0, 0, time.Millisecond, 15*time.Millisecond)
		s.tag = rng.IntN(3) == 0 // from the beginning of the journal
	}
	return s
}

// follow carries out a step about watches.
func (w *process) follow(s step) {
	list := w.following.list
	switch {
	case s.op == "odd":
		w.oddWatch(s.n)
	case len(list) == 0 || s.op == "begin" && len(list) < maxFollowers:
		w.begin(s)
	case s.op == "close" || s.op == "let go":
		f := list[s.n%len(list)]
		if f.w == w && f.watch != nil {
			w.letGo(f, s.op == "let go")
		}
	default:
		w.resume(list[s.n%len(list)])
	}
}

// begin has one more begin.
func (w *process) begin(s step) {
	f := &follower{number: len(w.following.list), name: s.name, rule: max(0, s.n-5) % 4, pause: s.d, hasty: s.n%2 == 0, begun: s.tag}
	if s.pod != "" {
		f.pods = []string{s.pod}
		if s.to != "" && s.name == "" {
			f.pods = []string{s.to, s.pod, s.to}
		}
	}
	w.following.list = append(w.following.list, f)
	w.resume(f)
}

// letGo ends a watch. Who lets go has seen that there is nothing more; who closes
// may have missed what was shown last.
func (w *process) letGo(f *follower, position bool) {
	if at := f.watch.Position(); position && at > f.at {
		f.at = at
	}
	f.watch.Close()
	w.note("%v ends at %d", f, f.at)
	f.watch, f.w = nil, nil
}

// acknowledged is a position through which something is acknowledged.
func (w *process) acknowledged() (position uint64) {
	for key, tag := range w.last {
		if e := w.chronicle.find(key, tag); e != nil {
			position = max(position, e.Position)
		}
	}
	return position
}

// resume opens the next watch of a follower, unless there is one.
func (w *process) resume(f *follower) {
	if f.w == w {
		return
	}
	f.w, f.watch, f.short = w, nil, map[string]entity.ETag{}
	w.jobs++
	w.sys.Go(func() {
		known := w.acknowledged()
		request := f.request()
		watch, err := w.pods.Watch(context.Background(), request)
		w.jobs--
		if w.dead {
			return
		}
		w.note("%v watches behind %d: %v", f, f.at, err)
		if err != nil {
			f.w = nil // and it can be tried again
			if !w.mayFail(err) {
				w.wrong("%v cannot watch behind %d: %v", f, f.at, err)
			}
			return
		}
		f.watch, f.resumed, f.told = watch, f.begun, false
		if !f.begun {
			f.begun, f.from, f.at = true, watch.Position(), watch.Position()
			if f.at < known {
				w.wrong("G2: %v begins behind %d, and a change at %d was acknowledged before", f, f.at, known)
			}
		}
		w.attend(f, watch)
	})
}

// mayFail reports whether a read may have ended like this.
func (w *process) mayFail(err error) bool {
	switch {
	case errors.Is(err, persist.ErrUnavailable):
		return w.disturbed || w.ending
	case errors.Is(err, pod.ErrStopping):
		return w.ending
	case errors.Is(err, pod.ErrNoPod):
		_, err := w.pods.Pod(scratch)
		return err != nil
	}
	return false
}

// attend reads a watch to its end.
func (w *process) attend(f *follower, watch *pod.Watch) {
	for hurry := f.hasty; ; {
		ctx, cancel := context.Background(), func() {}
		if hurry {
			ctx, cancel = w.sys.WithTimeout(ctx, 7*time.Millisecond)
		}
		e, err := watch.Next(ctx)
		cancel()
		switch {
		case w.dead:
			return
		case f.watch != watch:
			if err == nil && hurry || err != nil && !errors.Is(err, pod.ErrWatchClosed) && !errors.Is(err, context.DeadlineExceeded) && !w.ending {
				w.note("%v had ended: %v", f, err)
			}
			return
		case errors.Is(err, context.DeadlineExceeded):
			if at := watch.Position(); at < f.at {
				w.wrong("%v has come to %d, and stands at %d", f, f.at, at)
			} else if f.number%2 == 0 {
				f.at = at
			}
			hurry = false
			continue
		case err != nil:
			if !errors.Is(err, pod.ErrStopping) || !w.ending {
				w.wrong("%v ended behind %d: %v", f, f.at, err)
			}
			f.watch, f.w = nil, nil
			return
		}
		hurry = f.hasty
		w.take(f, &e)
		if f.pause > 0 && w.sys.Sleep(context.Background(), f.pause) != nil {
			return
		}
	}
}

// oddWatch asks for watches that there cannot be.
func (w *process) oddWatch(n int) {
	w.jobs++
	w.sys.Go(func() {
		r := []pod.WatchRequest{
			{Pods: []string{"nowhere"}}, {Name: "e0"}, {Pods: []string{things}, Name: ".."}, {Resume: true, After: 1 << 40},
		}[n%4]
		watch, err := w.pods.Watch(context.Background(), r)
		w.jobs--
		if w.dead {
			return
		}
		w.note("watch of %v: %v", r.Pods, err)
		if err == nil {
			watch.Close()
		}
		wants := []error{pod.ErrNoPod, entity.ErrName, entity.ErrName, pod.ErrPosition}[n%4]
		if !errors.Is(err, wants) && (err == nil || !w.mayFail(err)) {
			w.wrong("a watch of %v %q behind %d gives: %v", r.Pods, r.Name, r.After, err)
		}
	})
}

// caughtUp waits until all who follow have seen everything: changes are told at
// once, or at the next look at the store. It returns them, but for those whose
// pod is gone.
func (w *process) caughtUp() (all []*follower) {
	_, gone := w.pods.Pod(scratch)
	for _, f := range w.following.list {
		if (f.w != w || f.watch == nil) && gone != nil && slices.Contains(f.pods, scratch) {
			continue
		}
		w.resume(f)
		all = append(all, f)
	}
	last := w.lastOf(all)
	for i, f := range all {
		f.through = last[i] // reminders bring more meanwhile
	}
	behind := func() *follower {
		for i, f := range all {
			if f.w != w || f.watch == nil || f.watch.Position() < last[i] {
				return f
			}
		}
		return nil
	}
	begin := w.sys.Now()
	w.exec.RunUntil(func() bool { return behind() == nil || w.sys.Now().Sub(begin) > 20*time.Second })
	if f := behind(); f != nil {
		w.wrong("G7: %v is stuck behind %d, and there is more for it: %v", f, f.at, last)
	}
	if open := w.pods.Watchers(); open != len(all) {
		w.wrong("there are %d watches, and %d should be", open, len(all))
	}
	return all
}

// lastOf returns the position of the last change for each follower.
func (r *run) lastOf(all []*follower) []uint64 {
	last := make([]uint64, len(all))
	for i, f := range all {
		for k := len(r.chronicle.all) - 1; k >= 0 && last[i] == 0; k-- {
			if e := r.chronicle.all[k]; f.wants(e.Key) {
				last[i] = e.Position
			}
		}
	}
	return last
}

// checkFollowers looks, at the end, whether everybody was shown everything.
func (w *process) checkFollowers() {
	for _, f := range w.caughtUp() {
		w.checkSights(f)
	}
	if w.seed%6 == 0 && w.spoil() {
		f := &follower{number: len(w.following.list), pods: []string{frail}, begun: true, rule: int(w.seed % 4)}
		w.following.list = append(w.following.list, f)
		w.caughtUp()
		w.checkSights(f)
	}
}
