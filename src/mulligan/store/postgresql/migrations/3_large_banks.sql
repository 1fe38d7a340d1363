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

-- A list of ids has about ten, says the planner now; it looks each up, and does not read the whole bank to compare them.
CREATE OR REPLACE FUNCTION json_each(doc text) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE STRICT ROWS 10
    AS $$ SELECT json_array_elements_text(doc::json) $$;

-- The agents that a transaction sees are a range of numbers: one, or all. NULL, which nothing is equal to, is none.
CREATE FUNCTION first_seen() RETURNS bigint LANGUAGE sql STABLE BEGIN ATOMIC
    SELECT CASE WHEN sees_all() THEN -9223372036854775808 ELSE held_to_number() END;
END;
CREATE FUNCTION last_seen() RETURNS bigint LANGUAGE sql STABLE BEGIN ATOMIC
    SELECT CASE WHEN sees_all() THEN 9223372036854775807 ELSE held_to_number() END;
END;

-- What belongs to a lesson is seen with it, as before; the range lets an index find the lessons that are seen. The walls
-- of tables with a column for the agent stay as they are: our queries name the agent there, and a range beside it would
-- have the planner expect too few rows.
DO $$
DECLARE
    wall record;
BEGIN
    FOR wall IN SELECT * FROM (VALUES
        ('uses', 'l.n = uses.n'),
        ('vectors', 'l.n = vectors.n'),
        ('query_vectors', 'l.n = query_vectors.n'),
        ('keys', 'l.n = lesson')
    ) AS walls (place, same) LOOP
        EXECUTE format(
            'ALTER POLICY wall ON %I USING (EXISTS (SELECT 1 FROM lessons l WHERE %s'
            ' AND l.agent BETWEEN (SELECT first_seen()) AND (SELECT last_seen())))', wall.place, wall.same);
    END LOOP;
END $$;
