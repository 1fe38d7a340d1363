-- What made reading a large bank slow (design/113): a check of types that was called for each value, and walls that no
-- index could be asked for, so that a query looked at the lessons of all agents.

-- One function for each type, which the planner writes into the query.
DROP FUNCTION typeof(anyelement);
CREATE FUNCTION typeof(value bigint) RETURNS text LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN value IS NULL THEN 'null' ELSE 'integer' END;
CREATE FUNCTION typeof(value boolean) RETURNS text LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN value IS NULL THEN 'null' ELSE 'integer' END;
CREATE FUNCTION typeof(value double precision) RETURNS text LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN value IS NULL THEN 'null' ELSE 'real' END;
CREATE FUNCTION typeof(value bytea) RETURNS text LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN value IS NULL THEN 'null' ELSE 'blob' END;
CREATE FUNCTION typeof(value text) RETURNS text LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN value IS NULL THEN 'null' ELSE 'text' END;

-- The agents that a transaction sees are a range of numbers: one, or all. NULL, which nothing is equal to, is none.
CREATE FUNCTION first_seen() RETURNS bigint LANGUAGE sql STABLE BEGIN ATOMIC
    SELECT CASE WHEN sees_all() THEN -9223372036854775808 ELSE held_to_number() END;
END;
CREATE FUNCTION last_seen() RETURNS bigint LANGUAGE sql STABLE BEGIN ATOMIC
    SELECT CASE WHEN sees_all() THEN 9223372036854775807 ELSE held_to_number() END;
END;

DO $$
DECLARE
    place text;
BEGIN
    FOREACH place IN ARRAY ARRAY['lessons', 'log', 'accounts', 'found_kinds', 'work', 'worth'] LOOP
        EXECUTE format('ALTER POLICY wall ON %I USING (agent BETWEEN (SELECT first_seen()) AND (SELECT last_seen()))', place);
    END LOOP;
END $$;
