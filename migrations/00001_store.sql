-- +goose Up

-- One row. Whoever serves the store has put its own instance there, and every
-- transaction of its checks that the epoch is still the one it was given.
CREATE TABLE store (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    epoch    bigint NOT NULL, -- rises whenever somebody takes the store, or takes it again
    instance text   NOT NULL, -- of the server that took it last
    holder   text   NOT NULL, -- the same, for people
    pid      integer,         -- of the session that writes, and when it began
    began    timestamptz,
    position bigint NOT NULL  -- the highest that was given
) WITH (fillfactor = 20);

INSERT INTO store (epoch, instance, holder, position) VALUES (0, '', 'nobody', 0);

-- Entities. record is the truth; life and revision are checked against it when
-- it is read; changed, size and state are derived from it for people's SQL.
CREATE TABLE records (
    pod      text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    life     bigint  NOT NULL,
    revision bigint  NOT NULL,
    changed  timestamptz,      -- NULL if out of range here
    size     integer NOT NULL, -- bytes of the encoded state
    state    jsonb,            -- NULL if it has no form as jsonb
    record   bytea   NOT NULL, -- the checksummed envelope
    PRIMARY KEY (pod, name)
) WITH (fillfactor = 80);

-- The journal. change is the truth; it is sealed together with the columns
-- before it, except for at and type, which are derived.
CREATE TABLE changes (
    position bigint PRIMARY KEY,
    pod      text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    life     bigint  NOT NULL,
    revision bigint  NOT NULL,
    event    boolean NOT NULL,
    at       timestamptz,
    type     text,
    change   bytea   NOT NULL
);

CREATE INDEX changes_entity ON changes (pod, name, life, revision);

-- What commits with an entity: outbox, inbox cursors, first answers, reminders.
-- An id has up to 8,192 bytes, more than an index takes: its beginning gives the
-- order, a digest of the long ones makes them unique.
CREATE TABLE entity_rows (
    kind  text COLLATE "C" NOT NULL,
    pod   text COLLATE "C" NOT NULL,
    name  text COLLATE "C" NOT NULL,
    id    bytea  NOT NULL,
    sum   bigint NOT NULL, -- CRC32C of all the others
    value bytea  NOT NULL
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX entity_rows_key ON entity_rows (kind, pod, name, substring(id, 1, 512),
    (CASE WHEN length(id) > 512 THEN sha256(id) ELSE ''::bytea END));

CREATE INDEX entity_rows_entity ON entity_rows (pod, name);

-- +goose StatementBegin
CREATE FUNCTION twinsrv_require(ok boolean, code text, why text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF ok IS NOT TRUE THEN
        RAISE EXCEPTION USING ERRCODE = code, MESSAGE = why;
    END IF;
END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION twinsrv_json(document text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN document::jsonb;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END
$$;
-- +goose StatementEnd
