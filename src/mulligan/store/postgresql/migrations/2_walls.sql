-- The walls between agents, which hold whatever our code asks for (design/105). A transaction names its agent in the
-- setting mulligan.agent: '=NAME', or '*' for all. What is not set there reads and writes nothing.

-- The roles that serve; agent NULL: any one that a transaction names, and all. Only the owner writes here.
CREATE TABLE servers (role name PRIMARY KEY, agent words);
ALTER TABLE servers ENABLE ROW LEVEL SECURITY;
CREATE POLICY itself ON servers FOR SELECT USING (role = current_user);

CREATE FUNCTION asked() RETURNS text LANGUAGE sql STABLE RETURN nullif(current_setting('mulligan.agent', TRUE), '');
-- the agent that this transaction is held to, if its role may serve it
CREATE FUNCTION held_to() RETURNS text LANGUAGE sql STABLE BEGIN ATOMIC
    SELECT substr(asked(), 2) FROM servers s
    WHERE s.role = current_user AND asked() LIKE '=%' AND coalesce(s.agent = substr(asked(), 2), TRUE);
END;
CREATE FUNCTION held_to_number() RETURNS bigint LANGUAGE sql STABLE BEGIN ATOMIC
    SELECT n FROM agents WHERE id = held_to();
END;
-- whether it may see those of all agents, and what belongs to none of them
CREATE FUNCTION sees_all() RETURNS boolean LANGUAGE sql STABLE BEGIN ATOMIC
    SELECT EXISTS (SELECT 1 FROM servers s WHERE s.role = current_user AND s.agent IS NULL AND asked() = '*');
END;
CREATE FUNCTION serves_all() RETURNS boolean LANGUAGE sql STABLE BEGIN ATOMIC
    SELECT EXISTS (SELECT 1 FROM servers s WHERE s.role = current_user AND s.agent IS NULL AND asked() IS NOT NULL);
END;

DO $$
DECLARE
    wall record;
BEGIN
    FOR wall IN SELECT * FROM (VALUES
        ('episodes', 'agent = (SELECT held_to()) OR (SELECT sees_all())'),
        ('agents', 'id = (SELECT held_to()) OR (SELECT sees_all())'),
        ('lessons', 'agent = (SELECT held_to_number()) OR (SELECT sees_all())'),
        ('log', 'agent = (SELECT held_to_number()) OR (SELECT sees_all())'),
        ('accounts', 'agent = (SELECT held_to_number()) OR (SELECT sees_all())'),
        ('found_kinds', 'agent = (SELECT held_to_number()) OR (SELECT sees_all())'),
        ('work', 'agent = (SELECT held_to_number()) OR (SELECT sees_all())'),
        ('worth', 'agent = (SELECT held_to_number()) OR (SELECT sees_all())'),
        -- agent 0: recalls over all agents
        ('receipts', 'agent = (SELECT held_to_number()) OR (SELECT sees_all()) OR agent = 0 AND (SELECT serves_all())'),
        ('events', 'EXISTS (SELECT 1 FROM episodes e WHERE e.n = episode)'),
        ('leases', 'EXISTS (SELECT 1 FROM episodes e WHERE e.n = episode)'),
        ('steps', 'EXISTS (SELECT 1 FROM episodes e WHERE e.n = episode)'),
        ('files', 'EXISTS (SELECT 1 FROM episodes e WHERE e.n = episode)'),
        ('shown', 'EXISTS (SELECT 1 FROM episodes e WHERE e.n = episode)'),
        ('results', 'EXISTS (SELECT 1 FROM steps s WHERE s.n = step)'),
        ('uses', 'EXISTS (SELECT 1 FROM lessons l WHERE l.n = uses.n)'),
        ('vectors', 'EXISTS (SELECT 1 FROM lessons l WHERE l.n = vectors.n)'),
        ('query_vectors', 'EXISTS (SELECT 1 FROM lessons l WHERE l.n = query_vectors.n)'),
        ('keys', 'EXISTS (SELECT 1 FROM lessons l WHERE l.n = lesson)'),
        ('links', 'EXISTS (SELECT 1 FROM lessons l WHERE l.n = a) AND EXISTS (SELECT 1 FROM lessons l WHERE l.n = b)'),
        ('payloads', 'EXISTS (SELECT 1 FROM work w WHERE w.n = payloads.n)'),
        ('outcomes', 'EXISTS (SELECT 1 FROM work w WHERE w.n = work)')
    ) AS walls (place, rule) LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', wall.place);
        EXECUTE format('CREATE POLICY wall ON %I USING (%s)', wall.place, wall.rule);
    END LOOP;
END $$;

-- Contents are stored once, whoever refers to them; to be read through an episode that is seen, and gone with the last
ALTER TABLE texts ENABLE ROW LEVEL SECURITY;
CREATE POLICY wall ON texts USING (EXISTS (SELECT 1 FROM files f WHERE f.sha256 = texts.sha256));
CREATE POLICY new ON texts FOR INSERT WITH CHECK ((SELECT asked()) IS NOT NULL);
ALTER TABLE images ENABLE ROW LEVEL SECURITY;
CREATE POLICY wall ON images USING (EXISTS (SELECT 1 FROM shown s WHERE s.sha256 = images.sha256));
CREATE POLICY new ON images FOR INSERT WITH CHECK ((SELECT asked()) IS NOT NULL);
CREATE FUNCTION forget_content() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = mulligan, pg_temp AS $$
BEGIN
    IF TG_TABLE_NAME = 'files' THEN
        DELETE FROM texts t WHERE t.sha256 = OLD.sha256 AND NOT EXISTS (SELECT 1 FROM files WHERE sha256 = t.sha256);
    ELSE
        DELETE FROM images i WHERE i.sha256 = OLD.sha256 AND NOT EXISTS (SELECT 1 FROM shown WHERE sha256 = i.sha256);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER forget AFTER DELETE ON files FOR EACH ROW EXECUTE FUNCTION forget_content();
CREATE TRIGGER forget AFTER DELETE ON shown FOR EACH ROW EXECUTE FUNCTION forget_content();
