package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	proto "github.com/asynkron/protoactor-go/actor"

	"github.com/twinsrv/twinsrv/actor"
)

// spawns measures how long it takes to spawn an actor under a name, until it
// has started, and the bytes that one holds at rest, with its name and its
// place in its parent. The reference is protoactor-go, which is told to do the
// same. The numbers of actors are fixed: a period cannot shorten these.
func spawns() []measurement {
	var out []measurement
	for _, n := range []int{100_000, 1_000_000} {
		name := fmt.Sprintf("actor/spawn-%d", n)
		out = append(out, measurement{
			lines: []string{name, name + "-bytes"}, cost: true,
			ours:      func(string, time.Duration) ([]float64, error) { return spawn(n) },
			reference: func(string, time.Duration) ([]float64, error) { return protoSpawn(n) },
		})
	}
	return out
}

// starts counts to the last start.
type starts struct {
	left atomic.Int64
	all  chan struct{}
}

func newStarts(n int) *starts {
	s := &starts{all: make(chan struct{})}
	s.left.Store(int64(n))
	return s
}

func (s *starts) one() {
	if s.left.Add(-1) == 0 {
		close(s.all)
	}
}

// population times n calls of spawn until everyone has started, and finds what
// each has added to the heap. kept is alive until then.
func population(n int, s *starts, kept any, spawn func(name string) error) ([]float64, error) {
	before := heap()
	begin := time.Now()
	for i := range n {
		if err := spawn("room-" + strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	<-s.all
	took := time.Since(begin)
	bytes := heap() - before
	runtime.KeepAlive(kept)
	return []float64{float64(took.Nanoseconds()) / float64(n), float64(bytes) / float64(n)}, nil
}

// heap returns the bytes in use. The second collection frees what pools kept
// from the first.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// room is what is spawned: an actor without a field beyond what counts it.
type room struct{ starts *starts }

//nolint:unparam // the interface has the error
func (r *room) PreStart(*actor.Context) error {
	r.starts.one()
	return nil
}

func (r *room) Receive(*actor.Context, any) error { return nil }

func spawn(n int) ([]float64, error) {
	return withSystem(func(sys *actor.System) ([]float64, error) {
		s := newStarts(n)
		props := actor.PropsOf(func() actor.Actor { return &room{s} })
		return population(n, s, sys, func(name string) error {
			_, err := sys.Spawn(name, props)
			return err
		})
	})
}

// protoRoom is room for protoactor-go.
type protoRoom struct{ starts *starts }

func (r *protoRoom) Receive(c proto.Context) {
	if _, ok := c.Message().(*proto.Started); ok {
		r.starts.one()
	}
}

func protoSpawn(n int) (values []float64, err error) {
	quiet := func(*proto.ActorSystem) *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
	sys := proto.NewActorSystem(proto.WithLoggerFactory(quiet))
	defer sys.Shutdown()
	s := newStarts(n)
	props := proto.PropsFromProducer(func() proto.Actor { return &protoRoom{s} })
	values, err = population(n, s, sys, func(name string) error {
		_, err := sys.Root.SpawnNamed(props, name)
		return err
	})
	if err != nil {
		return nil, errors.Join(errors.New("protoactor-go"), err)
	}
	return values, nil
}
