// Package migrations holds the schema of the PostgreSQL store as goose
// migrations, embedded in the program. persist/postgres runs them.
//
// A migration that was released is never changed. Each is one transaction, and
// the program before it must be able to go on while it runs: a server that is
// up may be the older one.
package migrations

import "embed"

// Files has the migrations, named as goose wants: 00001_name.sql and so on. All
// names in them are without a schema; the session's search_path decides.
//
//go:embed *.sql
var Files embed.FS
