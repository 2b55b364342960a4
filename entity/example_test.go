package entity_test

import (
	"context"
	"fmt"

	"github.com/twinsrv/twinsrv/entity"
)

type account struct {
	Owner string `json:"owner"`
	Cents int64  `json:"cents"`
}

type deposit struct {
	Cents int64 `json:"cents"`
}

type balance struct{}

// A Type is the state's Go type, how an entity begins, and its messages. What
// cannot work is refused when the type is compiled, not when a message comes.
func ExampleType() {
	accounts := entity.Type[account]{
		Name: "accounts",
		Init: func(_ context.Context, name string) (account, error) { return account{Owner: name}, nil },
		Handlers: entity.Handlers[account]{
			"deposit": entity.On(func(_ *entity.Context, a *account, m deposit) error {
				if m.Cents <= 0 {
					return entity.Rejectf("a deposit must be positive")
				}
				a.Cents += m.Cents
				return nil
			}),
			"balance": entity.Query(func(_ *entity.Context, a *account, _ balance) (int64, error) {
				return a.Cents, nil
			}),
		},
		Create: entity.Creation{Names: "[a-z]+"},
	}
	spec, err := accounts.Spec()
	if err != nil {
		panic(err)
	}
	for _, h := range spec.Handlers() {
		fmt.Println(h.Name, h.Kind, h.Creates)
	}
	_, err = spec.Parse("deposit", []byte(`{"euros":1}`))
	fmt.Println(err)
	// Output:
	// balance query false
	// deposit on true
	// message "deposit" of pod accounts: unknown field: .euros
}
