package sim

import (
	"context"
	"slices"

	"github.com/twinsrv/twinsrv/entity"
)

// The pods of accounts, which send each other money by SendOnce.
const (
	accounts = "accounts" // synchronous
	purses   = "purses"   // event-sourced
	tills    = "tills"    // asynchronous
)

// endowment is what every account begins with.
const endowment = 100

// account remembers what it sent and got.
type account struct {
	Balance int      `json:"balance"`
	Sent    []string `json:"sent"`
	Got     []parcel `json:"got"`
}

type parcel struct {
	ID   string `json:"id"`
	From string `json:"from"` // pod/name
}

type (
	transfer struct {
		ID, Pod, Name string
		Amount        int
	}
	overdraw struct {
		ID, Pod, Name string
	} // sends too much, and then says no
	deposit struct {
		ID, From string
		Amount   int
	}
	balance struct{}

	withdrawn struct {
		ID     string `json:"id"`
		Amount int    `json:"amount"`
	}
	deposited deposit
)

func (a *account) withdraw(e withdrawn) {
	a.Balance -= e.Amount
	a.Sent = append(a.Sent, e.ID)
}

func (a *account) deposit(e deposited) {
	a.Balance += e.Amount
	a.Got = append(a.Got, parcel{e.ID, e.From})
}

// banking makes the handlers of accounts whose state changes by out and in.
func banking(out func(*entity.Context, *account, withdrawn), in func(*entity.Context, *account, deposited)) entity.Handlers[account] {
	return entity.Handlers[account]{
		"transfer": entity.Reply(func(c *entity.Context, a *account, m transfer) (int, error) {
			if a.Balance < m.Amount {
				return 0, entity.Rejectf("it has %d", a.Balance)
			}
			left := a.Balance - m.Amount
			out(c, a, withdrawn{m.ID, m.Amount})
			c.SendOnce(m.Pod, m.Name, deposit{m.ID, c.Pod() + "/" + c.Name(), m.Amount})
			return left, nil
		}),
		"overdraw": entity.On(func(c *entity.Context, a *account, m overdraw) error {
			out(c, a, withdrawn{m.ID, 1 << 20})
			c.SendOnce(m.Pod, m.Name, deposit{m.ID, c.Pod() + "/" + c.Name(), 1 << 20})
			return entity.Rejectf("too much")
		}),
		"deposit": entity.On(func(c *entity.Context, a *account, m deposit) error {
			in(c, a, deposited(m))
			return nil
		}),
		"balance": entity.Query(func(_ *entity.Context, a *account, _ balance) (account, error) {
			return account{a.Balance, slices.Clone(a.Sent), slices.Clone(a.Got)}, nil
		}),
	}
}

func (w *process) bank(pod string, durability entity.Durability) entity.Type[account] {
	return entity.Type[account]{
		Name: pod, Durability: durability, Index: w.indexing.paths(w.run, pod),
		Init: func(context.Context, string) (account, error) { return account{Balance: endowment}, nil },
		Handlers: banking(
			func(_ *entity.Context, a *account, e withdrawn) { a.withdraw(e) },
			func(_ *entity.Context, a *account, e deposited) { a.deposit(e) }),
	}
}

func (w *process) sourcedBank(pod string) entity.Sourced[account] {
	return entity.Sourced[account]{
		Name: pod, SnapshotEvery: 4, Index: w.indexing.paths(w.run, pod),
		New: func(string) account { return account{Balance: endowment} },
		Commands: banking(
			func(c *entity.Context, _ *account, e withdrawn) { c.Raise(e) },
			func(c *entity.Context, _ *account, e deposited) { c.Raise(e) }),
		Events: entity.Events[account]{
			"withdrawn": entity.Apply(func(a *account, e withdrawn) { a.withdraw(e) }),
			"deposited": entity.Apply(func(a *account, e deposited) { a.deposit(e) }),
		},
	}
}
