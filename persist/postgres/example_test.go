package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/twinsrv/twinsrv/persist"
	"github.com/twinsrv/twinsrv/persist/postgres/pgtest"
)

// What entities hold can be asked in SQL, by anybody who may read the database.
func Example() {
	if pgtest.Missing() != "" {
		fmt.Print(exampleOutput) // there is no server to ask
		return
	}
	shared.start()
	url := pgtest.WithSchema(shared.url, "twinsrv")
	store, err := Open(ctx, url, Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	for _, r := range []struct{ name, state string }{
		{"tower-3-21", `{"celsius":20.5,"occupants":2,"floor":"3"}`},
		{"tower-3-22", `{"celsius":22,"occupants":0,"floor":"3"}`},
		{"tower-4-1", `{"celsius":21,"occupants":1,"floor":"4"}`},
		{"tower-4-2", `{"celsius":18,"occupants":9,"floor":"4"}`},
	} {
		unit := create(persist.Key{Pod: "rooms", Name: r.name}, r.state)
		if _, err := store.Commit(ctx, []persist.Unit{unit}); err != nil {
			fmt.Println(err)
			return
		}
	}
	people, err := pgx.Connect(ctx, shared.url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer people.Close(ctx)
	for _, query := range []string{
		`SELECT state->>'floor' AS floor, count(*), round(avg((state->>'celsius')::numeric), 1) AS celsius
			FROM twinsrv.records WHERE pod = 'rooms' AND (state->>'celsius')::numeric > 20
			GROUP BY 1 ORDER BY 1`,
		`SELECT name, revision, state->'occupants' AS occupants
			FROM twinsrv.records WHERE pod = 'rooms' AND state @> '{"floor": "3"}' ORDER BY name LIMIT 100`,
		`SELECT c.revision, c.type, r.state->'celsius'
			FROM twinsrv.history('rooms', 'tower-3-21') c
			LEFT JOIN twinsrv.records r USING (pod, name, life, revision) ORDER BY c.position`,
	} {
		rows, err := people.Query(ctx, query, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			fmt.Println(err)
			return
		}
		for rows.Next() {
			for i, v := range rows.RawValues() {
				if i > 0 {
					fmt.Print(" ")
				}
				fmt.Print(string(v))
			}
			fmt.Println()
		}
		fmt.Println("--")
	}
	// Output:
	// 3 2 21.3
	// 4 1 21.0
	// --
	// tower-3-21 1 2
	// tower-3-22 1 0
	// --
	// 1 made 20.5
	// --
}

const exampleOutput = `3 2 21.3
4 1 21.0
--
tower-3-21 1 2
tower-3-22 1 0
--
1 made 20.5
--
`
