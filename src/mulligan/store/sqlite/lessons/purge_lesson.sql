-- Removes the lesson number :n of the agent :agent with its history.
DELETE FROM links WHERE a = :n OR b = :n;
DELETE FROM worth WHERE lesson = :n AND agent = :agent;
DELETE FROM keys WHERE lesson = :n;
DELETE FROM uses WHERE n = :n;
DELETE FROM vectors WHERE n = :n;
DELETE FROM query_vectors WHERE n = :n;
DELETE FROM log WHERE lesson = :n AND agent = :agent;
DELETE FROM lessons WHERE n = :n AND agent = :agent;
