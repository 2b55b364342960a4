package persist

import (
	"context"
	"reflect"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/internal/mutant"
	"github.com/twinsrv/twinsrv/snapshot"
)

// serviceConfig is a PersistentServiceManager without its type, with what is 0
// filled in.
type serviceConfig struct {
	key                    Key
	persistent             PersistentConfig
	worker                 actor.Props
	slots, queue           int
	attempts               int
	minBackoff, maxBackoff time.Duration
	timeout                time.Duration

	payload reflect.Type
	takes   func(msg any) bool                               // msg is a job
	job     func(id string, r *snapshot.Record) (any, error) // what a worker gets
	twice   bool                                             // Worker and Work are set
}

func (c *serviceConfig) fill() {
	if c.slots <= 0 {
		c.slots = 8
	}
	if c.queue == 0 {
		c.queue = 10_000
	}
	c.queue = max(c.queue, 0)
	if c.attempts <= 0 {
		c.attempts = 5
	}
	if c.minBackoff <= 0 {
		c.minBackoff = time.Second
	}
	if c.maxBackoff <= 0 {
		c.maxBackoff = 5 * time.Minute
	}
	if c.persistent.Codec == nil {
		c.persistent.Codec = snapshot.Msgpack()
	}
}

// check says what is wrong with a manager.
func (c *serviceConfig) check() error {
	switch {
	case c.twice:
		return invalid("it has a Worker and Work; set one of them")
	case c.worker.New == nil:
		return invalid("it has neither a Worker nor Work")
	}
	if err := c.key.Check(); err != nil {
		return err
	}
	if err := c.persistent.Codec.Check(c.payload); err != nil {
		return err
	}
	return c.persistent.check()
}

// pause is how long a job waits behind so many attempts.
func (c *serviceConfig) pause(attempts uint64) time.Duration {
	pause := c.minBackoff
	for range attempts - 1 {
		if pause >= c.maxBackoff {
			break
		}
		pause *= 2
	}
	return min(pause, c.maxBackoff)
}

// decode decodes a job's payload.
func (c *serviceConfig) decode(r *snapshot.Record, into any) error {
	codec := c.persistent.Codec
	if r.Codec != codec.Name() {
		var err error
		if codec, err = snapshot.CodecByName(r.Codec); err != nil {
			return err
		}
	}
	return guarded(func() error {
		data, err := c.persistent.Upgrades.Apply(codec, r.State, r.Schema, c.persistent.Schema)
		if err != nil {
			return err
		}
		return codec.Decode(data, into)
	})
}

// job is one that is not finished.
type job struct {
	id string
	// record is its row. Its Revision counts the attempts that may have begun,
	// and Changed is when the job came.
	record snapshot.Record
	asked  actor.Message // what is to be answered once the row is durable
	timer  actor.Timer   // of its Timeout
	late   bool          // its worker was stopped by that
}

func (j *job) row() RowOp {
	return RowOp{Kind: jobKind, ID: j.id, Value: j.record.Append(nil)}
}

// parseJob reads a job's row.
func parseJob(r Row) (*job, error) {
	if r.Err != nil {
		return nil, r.Err
	}
	record, err := snapshot.Parse(r.Value)
	if err != nil {
		return nil, err
	}
	return &job{id: r.ID, record: record}, nil
}

// waitingJobs is a heap of jobs, with the one that came first on top.
type waitingJobs []*job

func (w waitingJobs) Len() int { return len(w) }
func (w waitingJobs) Less(i, j int) bool {
	return w[i].id < w[j].id != mutant.On(mutant.JobsOutOfOrder)
}
func (w waitingJobs) Swap(i, j int) { w[i], w[j] = w[j], w[i] }

// Push is heap.Push's.
func (w *waitingJobs) Push(x any) { *w = append(*w, x.(*job)) }

// Pop is heap.Pop's.
func (w *waitingJobs) Pop() any {
	last := len(*w) - 1
	j := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	return j
}

// worked is how the piped work of a worker says that it has ended.
type worked struct{}

// workerOf returns workers that are only a function.
func workerOf[T any](work func(ctx context.Context, job Job[T]) error) actor.Props {
	return actor.PropsFunc(func(c *actor.Context, msg any) error {
		switch m := msg.(type) {
		case Job[T]:
			c.PipeTo(c.Self(), func(ctx context.Context) (any, error) { return worked{}, work(ctx, m) })
		case worked:
			c.StopSelf()
		case actor.PipeFailed:
			return m.Err
		}
		return nil
	})
}
