-- Copies the events, steps and images of the episode number :old to :new, and appends :event.
INSERT INTO events (episode, seq, schema, event)
    SELECT :new, seq, schema, event FROM events WHERE episode = :old ORDER BY seq;
INSERT INTO steps (episode, key, request_hash, request)
    SELECT :new, key, request_hash, request FROM steps WHERE episode = :old ORDER BY n;
INSERT INTO results (step, result)
    SELECT s.n, r.result FROM steps o JOIN results r ON r.step = o.n
    JOIN steps s ON s.episode = :new AND s.key = o.key WHERE o.episode = :old;
INSERT INTO shown (episode, sha256) SELECT :new, sha256 FROM shown WHERE episode = :old ON CONFLICT DO NOTHING;
INSERT INTO events (episode, seq, schema, event)
    SELECT :new, coalesce(max(seq) + 1, 0), :schema, :event FROM events WHERE episode = :new;
