package persist

import (
	"context"
	"reflect"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/snapshot"
)

// PersistentServiceManager is an actor that has jobs done by workers: one worker
// actor for each job, so many at a time, the others in a durable queue. Props
// makes it.
//
// A message of type T is a job. Once it is durable the manager says JobAccepted:
// to the ask, or to the actor that sent it. From then on the job is done at
// least once, whatever happens to the process: it is in the store, as one row,
// until a worker has finished it and the row is removed. A job that is not taken
// is a dead letter, and its ask fails; who told it gets JobRefused. Where the
// error wraps ErrUnknown the job may be done all the same.
//
// A worker gets its Job as a message, without a sender, and is done when it
// stops itself (Context.StopSelf). If it ends otherwise, by an error or a panic,
// by Timeout or because somebody stopped it, the job is given to a new worker
// after a pause; if the process or the manager ends, then when the manager is
// there again. Each time the job's Attempt is higher. After MaxAttempts it
// becomes a dead letter, with the Job as its payload, and is removed. A crash in
// between may publish it twice.
//
// Unlike the worker of a patterns.ServiceManager it does not end when its handler
// returns: that would lose work which goes on.
//
// Jobs begin in the order in which they came, but for those that failed. The
// manager knows patterns.Status, Pause and Continue, as a ServiceManager does. A
// pause ends with the manager.
//
// While the store is down no job is taken and none begins; those that run go on.
// Jobs that cannot be read stay in the store, without an attempt being counted,
// and are reported to the log; the others are done.
type PersistentServiceManager[T any] struct {
	// Name is that of the queue in the store, so it stays the same over restarts.
	// It is checked as the name of an entity. The manager that was started last
	// has the queue: an older one stops when it finds out.
	Name string
	// Worker makes the workers. Its Work may be used in its place.
	Worker actor.Props
	// Work does a job on the executor, where it may block by the system's means.
	// An error or a panic is a failed attempt. ctx ends with the worker, whose
	// slot is then free; so Work returns when ctx ends.
	Work func(ctx context.Context, job Job[T]) error
	// Slots is how many workers there are at a time. 0 means 8.
	Slots int
	// Queue is how many jobs may wait for a slot, those included that wait for
	// another attempt. More are refused with an *actor.FullError. 0 means 10,000;
	// below zero none waits.
	Queue int
	// MaxAttempts is how often a job is tried. 0 means 5.
	MaxAttempts int
	// MinBackoff and MaxBackoff bound the pause before a job is tried again,
	// which doubles with each attempt. 0 means 1 s and 5 min.
	MinBackoff, MaxBackoff time.Duration
	// Timeout is how long an attempt may take; then its worker is stopped. 0 means
	// for ever.
	Timeout time.Duration
	// Committer is the way to the service that keeps the queue. Nil means the
	// system's default.
	Committer *Committer
	// Codec encodes the jobs; nil means msgpack. Those that wait in another one of
	// this program's are read all the same.
	Codec snapshot.Codec
	// Schema is the version of T, and Upgrades carry jobs of earlier versions
	// forward, as those of PersistentConfig do.
	Schema   uint32
	Upgrades snapshot.Upgrades
}

// Job is what a worker gets.
type Job[T any] struct {
	// ID is never given to another job of the queue, and stays the same over
	// attempts. A worker whose work must happen once uses it to recognise what
	// was done before.
	ID string
	// Attempt counts from 1 how often the job may have begun. After a crash a
	// number may be left out, but none comes twice.
	Attempt int
	// Accepted is when the manager got it.
	Accepted time.Time
	// Payload is the message, as it is in the store.
	Payload T
}

// The answers of a PersistentServiceManager.
type (
	// JobAccepted says that a job is durable.
	JobAccepted struct{ ID string }
	// JobRefused says that a job was not taken or, if the error wraps ErrUnknown,
	// that it is not known whether it was.
	JobRefused struct {
		Payload any
		Err     error
	}
)

const (
	// queues is the pod that the store keeps queues under.
	queues = "$queues"
	// jobKind is the kind of the rows that are jobs.
	jobKind = "job"
)

// Props returns Props that run the manager. Their Supervisor, which ends workers
// that fail, must stay; the other fields are the caller's to set.
func (m PersistentServiceManager[T]) Props() actor.Props {
	cfg := serviceConfig{
		key: Key{Pod: queues, Name: m.Name}, worker: m.Worker, slots: m.Slots, queue: m.Queue, attempts: m.MaxAttempts,
		minBackoff: m.MinBackoff, maxBackoff: m.MaxBackoff, timeout: m.Timeout,
		persistent: PersistentConfig{Committer: m.Committer, Codec: m.Codec, Schema: m.Schema, Upgrades: m.Upgrades},
		payload:    reflect.TypeFor[T](),
		takes:      func(msg any) bool { _, ok := msg.(T); return ok },
	}
	cfg.fill()
	cfg.job = func(id string, r *snapshot.Record) (any, error) {
		j := Job[T]{ID: id, Attempt: int(r.Revision), Accepted: r.Changed}
		if err := cfg.decode(r, &j.Payload); err != nil {
			return nil, err
		}
		return j, nil
	}
	if m.Work != nil {
		cfg.twice = m.Worker.New != nil
		cfg.worker = workerOf(m.Work)
	}
	return actor.Props{
		New:        func() actor.Actor { return &serviceHost{cfg: &cfg} },
		Supervisor: &actor.Strategy{Decide: func(error) actor.Directive { return actor.Stop }},
	}
}
