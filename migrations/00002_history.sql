-- +goose Up

-- It takes the place of an index on pod, name, life and revision: a number that
-- is made of the names is smaller, and faster to compare. Two entities may have
-- the same one, so whoever looks by it says pod and name too; people do by the
-- function history.
CREATE INDEX changes_history ON changes (hashtextextended(name, hashtextextended(pod, 0)), life, revision);

-- +goose StatementBegin
CREATE FUNCTION history(pod text, name text) RETURNS SETOF changes LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    SELECT * FROM changes c
    WHERE hashtextextended(c.name, hashtextextended(c.pod, 0)) = hashtextextended($2 COLLATE "C", hashtextextended($1 COLLATE "C", 0))
        AND c.pod = $1 AND c.name = $2
    ORDER BY c.life, c.revision, c.position
$$;
-- +goose StatementEnd

DROP INDEX changes_entity;
