package killtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/actor"
	"github.com/twinsrv/twinsrv/entity"
	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/pod"
)

// command asks something of an account. A transfer is sent again with the same
// ID until there was an answer.
type command struct {
	ID     uint64 `json:"id"`
	Of     string `json:"of"` // pod/name
	Note   bool   `json:"note,omitempty"`
	Leave  bool   `json:"leave,omitempty"` // memory
	To     string `json:"to,omitempty"`
	Amount int    `json:"amount,omitempty"`
}

// answer is what became of a command.
type answer struct {
	ID       uint64 `json:"id"`
	Balance  int    `json:"balance,omitempty"`
	Rejected bool   `json:"rejected,omitempty"`
	Later    string `json:"later,omitempty"` // why the command is to be sent again
	Error    string `json:"error,omitempty"` // why it should not have been sent at all
}

// bank has accounts on a store, in this process.
type bank struct {
	sys   *actor.System
	pods  *pod.Pods
	store persist.PersistenceService
}

// storm lets hardly any account stay in memory, and lets mailboxes fill up.
var storm = pod.Config{
	IdleAfter: 3 * time.Millisecond, MaxActive: 8, Mailbox: 12,
	Committer: persist.CommitterConfig{KeepChanges: 300, MinBackoff: time.Millisecond},
}

// undelivered is what the log says of a message that its receiver refused, which
// no account does.
const undelivered = "a deposit was refused"

// openBank runs the pods. The bank closes the store.
func openBank(store persist.PersistenceService, kinds []string, cfg pod.Config, log io.Writer) (*bank, error) {
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b := &bank{sys: actor.NewSystem("bank", actor.Config{Logger: logger}), store: store}
	b.sys.DeadLetters().Subscribe(func(z actor.ZombieMsg) {
		if _, once := z.Message.Payload.(entity.Undelivered); once {
			logger.Error(undelivered, "to", z.To, "reason", z.Reason)
		}
	})
	var err error
	if b.pods, err = pod.Open(b.sys, store, cfg); err != nil {
		return nil, err
	}
	for _, k := range kinds {
		d, err := definition(k)
		if err != nil {
			return nil, err
		}
		if _, err := b.pods.Start(context.Background(), d); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *bank) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return errors.Join(b.pods.Close(ctx), b.store.Close(), b.sys.Stop(ctx))
}

// do has a command carried out and calls answered with what became of it, on
// another goroutine perhaps.
func (b *bank) do(c command, answered func(answer)) {
	podName, name, _ := strings.Cut(c.Of, "/")
	reply := b.sys.OnReply(func(v any, err error) { answered(answerOf(c, v, err)) })
	p, err := b.pods.Pod(podName)
	if err == nil {
		err = p.Ref(name).Post(actor.Message{Payload: c.message(), Reply: reply})
	}
	if err != nil {
		reply.Fail(err)
	}
}

func (c command) message() any {
	switch {
	case c.Leave:
		return entity.Passivate()
	case c.Note:
		return note{}
	}
	return entity.WithID(strconv.FormatUint(c.ID, 10), transfer{ID: c.ID, To: c.To, Amount: c.Amount})
}

// temporary are the errors after which a command is to be sent again.
var temporary = []error{
	actor.ErrMailboxFull, actor.ErrStopped, actor.ErrTimeout, pod.ErrStopping,
	persist.ErrUnavailable, persist.ErrUnknown, entity.ErrBusy,
}

func answerOf(c command, v any, err error) answer {
	a := answer{ID: c.ID}
	rejected := (*entity.RejectedError)(nil)
	if errors.As(err, &rejected) {
		a.Rejected = true
		return a
	}
	for _, e := range temporary {
		if errors.Is(err, e) {
			a.Later = err.Error()
			return a
		}
	}
	if err != nil {
		a.Error = fmt.Sprintf("%+v: %v", c, err)
		return a
	}
	a.Balance, _ = v.(int)
	return a
}

// rows counts the rows that the store has, by kind.
func (b *bank) rows(ctx context.Context) (map[string]int, error) {
	n := map[string]int{}
	for after := (*persist.Row)(nil); ; {
		page, err := b.store.Rows(ctx, "", after, 1000)
		if err != nil || len(page) == 0 {
			return n, err
		}
		for _, r := range page {
			if r.Err != nil {
				return n, r.Err
			}
			n[r.Kind]++
		}
		after = &page[len(page)-1]
	}
}

// account returns an account as it is acknowledged; one that was never used has
// what it begins with.
func (b *bank) account(ctx context.Context, key string) (account, error) {
	podName, name, _ := strings.Cut(key, "/")
	p, err := b.pods.Pod(podName)
	if err != nil {
		return account{}, err
	}
	v, err := (&pod.Handle[account]{Pod: p}).Get(ctx, name)
	if errors.Is(err, entity.ErrNotFound) {
		return initAccount(ctx, name)
	}
	return v.State, err
}
