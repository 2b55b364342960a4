package postgres

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// flushBytes is how much gathers before it is put on its way.
const flushBytes = 16 << 10

// progress is how far a transaction has come.
type progress int

const (
	unsent     progress = iota // its COMMIT has not been sent: nothing of it can happen
	sent                       // all of it was sent
	committing                 // all before the COMMIT has succeeded
	committed
)

// bare is a statement without parameters.
func bare(name string) execution {
	return execution{name, func() [][]byte { return nil }}
}

// send sends statements on a connection, all before it hears of anything. The
// server begins with what is ready while the rest is made ready: parameters are
// made only when their turn comes.
//
// Without an error all have succeeded, and if the last is a COMMIT the progress
// is committed. An error of a committed transaction is the connection's, of what
// came after.
func (s *Store) send(ctx context.Context, c *pgx.Conn, work ...execution) (progress, error) {
	p := c.PgConn().StartPipeline(ctx)
	size, binaries := 0, []int16{1} // the form of all parameters and results
	for _, e := range work {
		if size >= flushBytes {
			if err := p.Flush(); err != nil {
				return unsent, closePipeline(p, err)
			}
			size = 0
		}
		parameters := e.parameters()
		for _, b := range parameters {
			size += len(b)
		}
		p.SendQueryStatement(s.prepared[e.name], parameters, binaries, binaries)
	}
	if err := p.Sync(); err != nil {
		// Some of what is sent last may have left.
		how := sent
		if pgconn.SafeToRetry(err) {
			how = unsent
		}
		return how, closePipeline(p, err)
	}
	return receive(p, len(work), work[len(work)-1].name == commitStatement)
}

// receive hears what became of the statements of a pipeline, of which the last
// may be a COMMIT.
func receive(p *pgconn.Pipeline, statements int, commits bool) (progress, error) {
	for done := 0; ; done++ {
		how := sent
		switch {
		case done == statements && commits:
			return committed, p.Close()
		case done == statements:
			return sent, p.Close()
		case done == statements-1 && commits:
			how = committing
		}
		tag, err := result(p)
		if err == nil && how == committing && tag.String() != "COMMIT" {
			err = fmt.Errorf("the server ended the transaction by %s", tag)
		}
		if err != nil {
			return how, closePipeline(p, err)
		}
	}
}

func result(p *pgconn.Pipeline) (pgconn.CommandTag, error) {
	r, err := p.GetResults()
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	rows, ok := r.(*pgconn.ResultReader)
	if !ok {
		return pgconn.CommandTag{}, fmt.Errorf("the server answers a statement by %T", r)
	}
	return rows.Close()
}

// closePipeline ends a pipeline that has failed. The first error says why.
func closePipeline(p *pgconn.Pipeline, err error) error {
	_ = p.Close()
	return err
}

func int8Binary(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
