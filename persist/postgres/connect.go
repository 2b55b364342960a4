package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	defaultSchema = "twinsrv"
	maxIdentifier = 63 // bytes; PostgreSQL cuts longer ones

	oldestServer = 130000 // server_version_num
)

// target says where a store is.
type target struct {
	pool   *pgxpool.Config
	schema string
	where  string // for errors: without the password
}

func parse(url string, cfg Config) (target, error) {
	pool, err := pgxpool.ParseConfig(url)
	if err != nil {
		return target{}, fmt.Errorf("read the store's URL: %w", err) // pgx hides the password
	}
	conn := pool.ConnConfig
	schema, path := conn.RuntimeParams["schema"], conn.RuntimeParams["search_path"]
	delete(conn.RuntimeParams, "schema")
	switch {
	case cfg.Schema != "":
		schema = cfg.Schema
	case schema == "" && path != "":
		first, _, _ := strings.Cut(path, ",")
		schema = strings.Trim(strings.TrimSpace(first), `"`)
	case schema == "":
		schema = defaultSchema
	}
	if schema == "" || len(schema) > maxIdentifier || strings.HasPrefix(schema, "pg_") || strings.HasPrefix(schema, "$") || !storable(schema) {
		return target{}, fmt.Errorf("the schema's name %q cannot be used: want 1 to %d bytes, not beginning with pg_ or $", schema, maxIdentifier)
	}
	conn.RuntimeParams["search_path"] = pgx.Identifier{schema}.Sanitize()
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = "twinsrv"
	}
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = cfg.Timeout
	}
	return target{
		pool:   pool,
		schema: schema,
		where:  fmt.Sprintf("postgres %s:%d/%s schema %s", conn.Host, conn.Port, conn.Database, schema),
	}, nil
}

// lockKey is the advisory lock of something in the schema. Locks of one
// database share their keys.
func (t target) lockKey(of string) int64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte("twinsrv " + of + " " + t.schema))
	return int64(h.Sum64())
}

// session has the settings of a connection.
type session map[string]string

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// baseSession has what every connection wants, whatever the server's, the
// database's or the role's defaults are.
func baseSession(cfg Config) session {
	return session{
		"default_transaction_isolation": "read committed",
		"default_transaction_read_only": "off",
		"idle_session_timeout":          "0",
		"jit":                           "off", // compiling takes longer than any statement here
		// The server's patience ends before the client's: then it says that it has
		// done nothing, while of a connection given up nothing is known.
		"statement_timeout":                   milliseconds(cfg.Timeout * 4 / 5),
		"lock_timeout":                        milliseconds(cfg.Timeout * 4 / 5),
		"idle_in_transaction_session_timeout": milliseconds(cfg.Timeout),
		// A client that vanished without a word is noticed in half a minute.
		"tcp_keepalives_idle":              "10",
		"tcp_keepalives_interval":          "5",
		"tcp_keepalives_count":             "4",
		"client_connection_check_interval": "5000",
	}
}

// writerSession also keeps the planner from reading whole tables for a group
// of keys, when a table has grown since its statistics were taken, and from
// planning anew for each group.
func writerSession(cfg Config) session {
	s := baseSession(cfg)
	for _, plan := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin"} {
		s[plan] = "off"
	}
	s["plan_cache_mode"] = "force_generic_plan"
	return s
}

// apply sets what the server knows of the settings, and makes commits wait
// for the disk where they would not.
func (s session) apply(ctx context.Context, c *pgx.Conn) error {
	names, values := make([]string, 0, len(s)), make([]string, 0, len(s))
	for name, value := range s {
		names, values = append(names, name), append(values, value)
	}
	_, err := c.Exec(ctx, `
		SELECT set_config(w.name, w.value, false)
		FROM unnest($1::text[], $2::text[]) AS w(name, value) JOIN pg_settings p ON p.name = w.name
		UNION ALL
		SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`, names, values)
	if err != nil {
		return fmt.Errorf("set up the session: %w", err)
	}
	return nil
}

// identity tells a session from every other that the server ever had.
type identity struct {
	pid   int32
	began time.Time
}

func identify(ctx context.Context, c *pgx.Conn) (i identity, err error) {
	err = c.QueryRow(ctx, `SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()`).Scan(&i.pid, &i.began)
	return i, err
}

// evict ends a session that the server may not have noticed to be gone. It does
// nothing if the server will not, another role's for example.
func evict(ctx context.Context, c *pgx.Conn, i identity) {
	_, _ = c.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2`, i.pid, i.began)
}

// connect opens one connection of its own, outside the pool.
func (t target) connect(ctx context.Context, s session) (*pgx.Conn, error) {
	c, err := pgx.ConnectConfig(ctx, t.pool.ConnConfig.Copy())
	if err != nil {
		return nil, err // pgx names host, user and database
	}
	if err := s.apply(ctx, c); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return c, nil
}

// readers opens the pool of reads. It connects when it is first used.
func (t target) readers(ctx context.Context, cfg Config) (*pgxpool.Pool, error) {
	p := t.pool.Copy()
	p.MaxConns = int32(min(cfg.Readers, 1000))
	p.MinConns = 0
	p.AfterConnect = baseSession(cfg).apply
	return pgxpool.NewWithConfig(ctx, p)
}

// checkServer refuses a server that cannot keep a store, and returns what may
// endanger what is kept.
func checkServer(ctx context.Context, c *pgx.Conn) (warning string, err error) {
	var version int
	var encoding, fsync, pages string
	err = c.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_encoding'),
		current_setting('fsync'), current_setting('full_page_writes')`).Scan(&version, &encoding, &fsync, &pages)
	switch {
	case err != nil:
		return "", err
	case version < oldestServer:
		return "", fmt.Errorf("%w: the server is PostgreSQL %d, want %d or newer", ErrSchema, version/10000, oldestServer/10000)
	case encoding != "UTF8":
		return "", fmt.Errorf("%w: the database's encoding is %s, want UTF8: create it with ENCODING 'UTF8' TEMPLATE template0", ErrSchema, encoding)
	case fsync != "on" || pages != "on":
		return fmt.Sprintf("the server runs with fsync=%s and full_page_writes=%s: what was acknowledged may be lost with the power", fsync, pages), nil
	}
	return "", nil
}
