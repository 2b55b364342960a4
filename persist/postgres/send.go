package postgres

import (
	"context"
	"encoding/binary"
	"fmt"

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

// send sends BEGIN, the fence, the work and COMMIT, all before it hears of
// anything. The server begins with what is ready while the rest is made ready:
// parameters are made only when their turn comes.
//
// An error of a committed transaction is the connection's, of what came after.
func (s *Store) send(ctx context.Context, position uint64, work []execution) (progress, error) {
	p := s.writer.PgConn().StartPipeline(ctx)
	size, binaries := 0, []int16{1} // the form of all parameters and results
	queue := func(name string, parameters ...[]byte) {
		for _, b := range parameters {
			size += len(b)
		}
		p.SendQueryStatement(s.prepared[name], parameters, binaries, binaries)
	}
	queue(beginStatement)
	queue(fenceStatement, int8Binary(s.epoch), int8Binary(int64(s.next-1)), int8Binary(int64(position)))
	for _, e := range work {
		if size >= flushBytes {
			if err := p.Flush(); err != nil {
				return unsent, closePipeline(p, err)
			}
			size = 0
		}
		queue(e.name, e.parameters()...)
	}
	queue(commitStatement)
	if err := p.Sync(); err != nil {
		// Some of what is sent last may have left.
		how := sent
		if pgconn.SafeToRetry(err) {
			how = unsent
		}
		return how, closePipeline(p, err)
	}
	return receive(p, len(work)+3)
}

// receive hears what became of the statements of a pipeline, of which the last
// is its COMMIT.
func receive(p *pgconn.Pipeline, statements int) (progress, error) {
	for done := 0; ; done++ {
		how := sent
		switch done {
		case statements:
			return committed, p.Close()
		case statements - 1:
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
