// Package postgres keeps entities in a PostgreSQL database (13 or newer): the
// store for those who have one already, or who want to ask it in SQL. It
// implements persist.PersistenceService.
//
// # One server at a time
//
// A store is a schema of a database, and one Store has it: an advisory lock keeps
// a second one out, which says who has it. The lock is a session's, and a session
// may end unnoticed; so each transaction that writes also checks, under the lock
// of the one row of the table store, that the epoch there is the one that this
// Store was given. A Store that was replaced fails with ErrFenced for good.
// Connect directly, or through a pooler that keeps sessions: one that hands a
// session from transaction to transaction loses the lock.
//
// # Commits
//
// The units of a call are one transaction, sent and answered in one round trip,
// with INSERT … SELECT unnest(…) for groups of up to 1,024 keys; those of a large
// call are two on two connections, so that two of the server's processors work on
// them. The revisions that they expect are checked there; only
// when one does not hold are the units judged anew against what was read.
// Positions are given in the order of commits, so that a reader never sees one
// appear behind one that it has seen.
//
// What fails is exact: persist.ErrUnavailable when nothing was done for certain,
// persist.ErrUnknown when the connection broke, or the time ran out, while the
// commit was under way. After that the Store takes the store anew, by which the
// lost commit is ended or has happened, before it answers anything. It reconnects
// by itself.
//
// Commits wait for the disk whatever synchronous_commit says by default. With an
// asynchronous standby, a failover can lose what was acknowledged last.
//
// # People's SQL
//
// records.record is the truth, an envelope with a checksum. The columns changed,
// size and state are derived from it: state is the entity's state as jsonb, NULL
// where it has no such form (U+0000 in a string, half a surrogate pair, a number
// of more than 4,096 digits, an unknown codec). Reading is free for all; an index
// on it is yours to make:
//
//	CREATE INDEX rooms_floor ON twinsrv.records ((state->>'floor')) WHERE pod = 'rooms';
//
// The three queries of the example: warm rooms by floor, the page of one floor's
// rooms, and how a room came to be what it is.
//
//	SELECT state->>'floor' AS floor, count(*), round(avg((state->>'celsius')::numeric), 1) AS celsius
//	FROM twinsrv.records WHERE pod = 'rooms' AND (state->>'celsius')::numeric > 20
//	GROUP BY 1 ORDER BY 1;
//
//	SELECT name, revision, state->'occupants' AS occupants
//	FROM twinsrv.records WHERE pod = 'rooms' AND state @> '{"floor": "3"}' ORDER BY name LIMIT 100;
//
//	SELECT c.revision, c.type, c.at, r.state
//	FROM twinsrv.history('rooms', 'tower-3-21') c
//	LEFT JOIN twinsrv.records r USING (pod, name, life, revision) ORDER BY c.position;
//
// The function history finds an entity's changes by an index; a condition on pod
// and name in changes itself reads the whole table.
//
// Nobody but the Store writes to the tables. A record whose columns were changed
// by hand is an error for its entity alone (snapshot.ErrCorrupt).
//
// # Backup
//
// pg_dump writes a store as of one moment, while it is used:
//
//	pg_dump --format=custom --schema=twinsrv --file=twinsrv.dump DATABASE
//	pg_restore --dbname=OTHER twinsrv.dump
//
// and the server's own base backups and WAL archives hold it with everything
// else. A restored store is opened like any other.
package postgres
