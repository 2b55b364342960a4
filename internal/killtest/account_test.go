package killtest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twinsrv/twinsrv/entity"
)

// The pods that accounts live in, one for each way in which an entity is kept.
const (
	accounts = "accounts" // durable before a change is acknowledged
	tills    = "tills"    // acknowledged first, durable a little later
	ledgers  = "ledgers"  // their truth is the journal
)

// initial is what an account has before its first message.
const initial = 100

// remembered is how many answers an account gives again.
const remembered = 100

// account has money, and remembers in order what it sent and got.
type account struct {
	Balance int       `json:"balance"`
	Sent    []uint64  `json:"sent"` // ids of transfers
	Got     []receipt `json:"got"`
	Notes   int       `json:"notes"`
}

// receipt is a transfer as its receiver has it.
type receipt struct {
	From string `json:"from"`
	ID   uint64 `json:"id"`
}

type (
	// transfer takes money out and sends it on, in one turn.
	transfer struct {
		ID     uint64 `json:"id"`
		To     string `json:"to"` // pod/name
		Amount int    `json:"amount"`
	}
	// deposit brings it in.
	deposit struct {
		Receipt receipt `json:"receipt"`
		Amount  int     `json:"amount"`
	}
	// note changes an account and has no id.
	note struct{}
)

// The events of a ledger.
type (
	withdrawn struct {
		ID     uint64 `json:"id"`
		Amount int    `json:"amount"`
	}
	deposited struct {
		Receipt receipt `json:"receipt"`
		Amount  int     `json:"amount"`
	}
	noted struct{}
)

func initAccount(context.Context, string) (account, error) { return account{Balance: initial}, nil }

func (a *account) withdraw(id uint64, amount int) {
	a.Balance -= amount
	a.Sent = append(a.Sent, id)
}

func (a *account) pay(r receipt, amount int) {
	a.Balance += amount
	a.Got = append(a.Got, r)
}

// overdraft rejects a transfer that there is not enough money for.
func (a *account) overdraft(m transfer) error {
	if a.Balance < m.Amount {
		return entity.Rejectf("it has %d", a.Balance)
	}
	return nil
}

// sendOn sends a withdrawal's money.
func sendOn(c *entity.Context, m transfer) {
	pod, name, _ := strings.Cut(m.To, "/")
	c.SendOnce(pod, name, deposit{Receipt: receipt{From: c.Pod() + "/" + c.Name(), ID: m.ID}, Amount: m.Amount})
}

var window = entity.Window{Count: remembered}

// stateful is a type of accounts that are kept as their state.
func stateful(pod string, durability entity.Durability) entity.Type[account] {
	return entity.Type[account]{
		Name: pod, Durability: durability, Repeats: window,
		Init: initAccount,
		Handlers: entity.Handlers[account]{
			"transfer": entity.Reply(func(c *entity.Context, a *account, m transfer) (int, error) {
				if err := a.overdraft(m); err != nil {
					return 0, err
				}
				a.withdraw(m.ID, m.Amount)
				sendOn(c, m)
				return a.Balance, nil
			}),
			"deposit": entity.On(func(_ *entity.Context, a *account, m deposit) error {
				a.pay(m.Receipt, m.Amount)
				return nil
			}),
			"note": entity.On(func(_ *entity.Context, a *account, _ note) error {
				a.Notes++
				return nil
			}),
		},
	}
}

// sourced is the same kept as events.
func sourced(pod string) entity.Sourced[account] {
	return entity.Sourced[account]{
		Name: pod, Repeats: window, SnapshotEvery: 8,
		New: func(string) account { return account{Balance: initial} },
		Commands: entity.Handlers[account]{
			"transfer": entity.Reply(func(c *entity.Context, a *account, m transfer) (int, error) {
				if err := a.overdraft(m); err != nil {
					return 0, err
				}
				c.Raise(withdrawn{m.ID, m.Amount})
				sendOn(c, m)
				return a.Balance, nil
			}),
			"deposit": entity.On(func(c *entity.Context, _ *account, m deposit) error {
				c.Raise(deposited(m))
				return nil
			}),
			"note": entity.On(func(c *entity.Context, _ *account, _ note) error {
				c.Raise(noted{})
				return nil
			}),
		},
		Events: entity.Events[account]{
			"withdrawn": entity.Apply(func(a *account, e withdrawn) { a.withdraw(e.ID, e.Amount) }),
			"deposited": entity.Apply(func(a *account, e deposited) { a.pay(e.Receipt, e.Amount) }),
			"noted":     entity.Apply(func(a *account, _ noted) { a.Notes++ }),
		},
	}
}

// definition returns the type of a pod's accounts.
func definition(pod string) (entity.Definition, error) {
	switch pod {
	case accounts:
		return stateful(pod, entity.Sync()), nil
	case tills:
		return stateful(pod, entity.Async(4*time.Millisecond)), nil
	case ledgers:
		return sourced(pod), nil
	}
	return nil, fmt.Errorf("there are no accounts in a pod %q", pod)
}
