-- Removes everything of one agent (:agent): its lessons, their histories, its receipts and its queued work.
DELETE FROM links WHERE a IN (SELECT n FROM lessons WHERE agent = :agent);
DELETE FROM worth WHERE agent = :agent;
DELETE FROM keys WHERE lesson IN (SELECT n FROM lessons WHERE agent = :agent);
DELETE FROM uses WHERE n IN (SELECT n FROM lessons WHERE agent = :agent);
DELETE FROM vectors WHERE n IN (SELECT n FROM lessons WHERE agent = :agent);
DELETE FROM query_vectors WHERE n IN (SELECT n FROM lessons WHERE agent = :agent);
DELETE FROM log WHERE agent = :agent;
DELETE FROM lessons WHERE agent = :agent;
DELETE FROM outcomes WHERE receipt IN (SELECT n FROM receipts WHERE agent = :agent);
DELETE FROM outcomes WHERE work IN (SELECT n FROM work WHERE agent = :agent);
DELETE FROM receipts WHERE agent = :agent;
DELETE FROM accounts WHERE agent = :agent;
DELETE FROM found_kinds WHERE agent = :agent;
DELETE FROM payloads WHERE n IN (SELECT n FROM work WHERE agent = :agent);
DELETE FROM work WHERE agent = :agent;
DELETE FROM agents WHERE n = :agent;
UPDATE bank SET generation = generation + 1;
