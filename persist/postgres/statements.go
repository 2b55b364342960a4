package postgres

import (
	"fmt"
	"strings"
)

// The writer's statements, by the names under which each of its connections has
// prepared them. A group of up to 1,024 keys is one execution, with an array for
// each column. Keys come sorted and each once.
const (
	beginStatement  = "begin"
	hurryStatement  = "hurry"
	commitStatement = "commit"
	fenceStatement  = "fence"

	proveStatement  = "prove"
	insertStatement = "insert"
	updateStatement = "update"
	deleteStatement = "delete"
	changeStatement = "change"

	clearRowsStatement  = "clear-rows"
	deleteRowsStatement = "delete-rows"
	putRowsStatement    = "put-rows"

	readStatement = "read"
	lastStatement = "last"
	trimStatement = "trim"

	importRecordsStatement = "import-records"
	importChangesStatement = "import-changes"

	// tolerant marks the statements that write records whose state the server
	// has refused as jsonb: there it becomes NULL.
	tolerant = "-tolerant"
)

// Columns of parameters with their types, in the order in which columns.go makes
// them.
const (
	keyParameters    = "pod text, name text"
	wasParameters    = "was_life bigint, was_revision bigint"
	recordParameters = keyParameters + ", life bigint, revision bigint, changed timestamptz, size int, state text, record bytea"
	changeParameters = "position bigint, " + keyParameters + ", life bigint, revision bigint, event boolean, at timestamptz, type text, change bytea"
	rowParameters    = "kind text, " + keyParameters + ", id bytea"
	valueParameters  = "sum bigint, value bytea"
)

// unnested makes a table u of parameters, of which each is an array with a value
// for every row. Rows are made one after the other: unnest in FROM, of several
// arrays, would store each of them first.
func unnested(columns string) string {
	var b strings.Builder
	b.WriteString("(SELECT ")
	for i, c := range strings.Split(columns, ", ") {
		if i > 0 {
			b.WriteString(", ")
		}
		name, element, _ := strings.Cut(c, " ")
		fmt.Fprintf(&b, "unnest($%d::%s[]) AS %s", i+1, element, name)
	}
	b.WriteString(") u")
	return b.String()
}

// ofEntity is true for the changes of the entity with the pod $1 and the name $2.
// Its first part is what the index has.
const ofEntity = `hashtextextended(name, hashtextextended(pod, 0)) = hashtextextended($2::text COLLATE "C", hashtextextended($1::text COLLATE "C", 0))
	AND pod = $1 AND name = $2`

func upsertRows() string {
	return `
	INSERT INTO entity_rows (kind, pod, name, id, sum, value)
	SELECT * FROM ` + unnested(rowParameters+", "+valueParameters) + `
	ON CONFLICT (kind, pod, name, substring(id, 1, 512), (CASE WHEN length(id) > 512 THEN sha256(id) ELSE ''::bytea END))
	DO UPDATE SET sum = excluded.sum, value = excluded.value`
}

func insertRecords(state string) string {
	return `
	INSERT INTO records (pod, name, life, revision, changed, size, state, record)
	SELECT u.pod, u.name, u.life, u.revision, u.changed, u.size, ` + state + `, u.record
	FROM ` + unnested(recordParameters)
}

func updateRecords(state string) string {
	return `
	WITH done AS (
		UPDATE records r SET life = u.life, revision = u.revision, changed = u.changed, size = u.size, state = ` + state + `, record = u.record
		FROM ` + unnested(recordParameters+", "+wasParameters) + `
		WHERE r.pod = u.pod AND r.name = u.name AND r.life = u.was_life AND r.revision = u.was_revision
		RETURNING 1)
	SELECT twinsrv_require((SELECT count(*) FROM done) = cardinality($1::text[]), '` + stateStale + `', 'a record is not as expected')`
}

func importRecords(state string) string {
	return insertRecords(state) + `
	ON CONFLICT (pod, name) DO UPDATE SET life = excluded.life, revision = excluded.revision, changed = excluded.changed,
		size = excluded.size, state = excluded.state, record = excluded.record`
}

func insertChanges() string {
	return `
	INSERT INTO changes (position, pod, name, life, revision, event, at, type, change)
	SELECT * FROM ` + unnested(changeParameters)
}

func statements() map[string]string {
	m := map[string]string{
		beginStatement:  `BEGIN`,
		commitStatement: `COMMIT`,

		// Locks that a half waits for longer may be the other's; see errHeld.
		hurryStatement: `SET LOCAL lock_timeout = '1s'`,

		// $1 and $2 are what this server left there. The row stays locked to the
		// transaction's end.
		fenceStatement: `
	WITH moved AS (UPDATE store SET position = greatest(position, $3) WHERE epoch = $1 AND position = $2 RETURNING 1)
	SELECT twinsrv_require(EXISTS (SELECT FROM moved), '` + stateFenced + `', 'the store row is not as this server left it')`,

		// Life 0 is a key that must be absent.
		proveStatement: `
	SELECT twinsrv_require(NOT EXISTS (
		SELECT FROM ` + unnested(keyParameters+", "+wasParameters) + `
		LEFT JOIN records r ON r.pod = u.pod AND r.name = u.name
		WHERE coalesce(r.life, 0) <> u.was_life OR coalesce(r.revision, 0) <> u.was_revision
	), '` + stateStale + `', 'a record is not as expected')`,

		deleteStatement: `
	WITH done AS (
		DELETE FROM records r
		USING ` + unnested(keyParameters+", "+wasParameters) + `
		WHERE r.pod = u.pod AND r.name = u.name AND r.life = u.was_life AND r.revision = u.was_revision
		RETURNING 1)
	SELECT twinsrv_require((SELECT count(*) FROM done) = cardinality($1::text[]), '` + stateStale + `', 'a record is not as expected')`,

		changeStatement: insertChanges(),
		importChangesStatement: insertChanges() + `
	ON CONFLICT (position) DO UPDATE SET pod = excluded.pod, name = excluded.name, life = excluded.life, revision = excluded.revision,
		event = excluded.event, at = excluded.at, type = excluded.type, change = excluded.change`,

		clearRowsStatement: `
	DELETE FROM entity_rows r USING ` + unnested(keyParameters) + `
	WHERE r.pod = u.pod AND r.name = u.name`,
		deleteRowsStatement: `
	DELETE FROM entity_rows r USING ` + unnested(rowParameters) + `
	WHERE r.kind = u.kind AND r.pod = u.pod AND r.name = u.name AND substring(r.id, 1, 512) = substring(u.id, 1, 512) AND r.id = u.id`,
		putRowsStatement: upsertRows(),

		readStatement: `
	SELECT r.pod, r.name, r.life, r.revision FROM ` + unnested(keyParameters) + `
	JOIN records r ON r.pod = u.pod AND r.name = u.name`,
		lastStatement: `
	SELECT coalesce(max(revision), 0) FROM changes WHERE ` + ofEntity + ` AND life = $3`,

		trimStatement: `
	WITH seen AS (
		SELECT position, pod, name, life, event FROM changes
		WHERE position > $1 AND position <= $2 ORDER BY position LIMIT $3),
	gone AS (
		DELETE FROM changes c USING seen s
		WHERE c.position = s.position AND NOT (s.event AND EXISTS (
			SELECT FROM records r WHERE r.pod = s.pod AND r.name = s.name AND r.life = s.life))
		RETURNING 1)
	SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM seen), (SELECT coalesce(max(position), 0) FROM seen)`,
	}
	for suffix, state := range map[string]string{"": "u.state::jsonb", tolerant: "twinsrv_json(u.state)"} {
		m[insertStatement+suffix] = insertRecords(state)
		m[updateStatement+suffix] = updateRecords(state)
		m[importRecordsStatement+suffix] = importRecords(state)
	}
	return m
}
