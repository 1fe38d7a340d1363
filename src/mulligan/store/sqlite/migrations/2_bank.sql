-- the wall between agents is a number in every row. `generation`: when it was made, or emptied, by the counter of
-- the bank; n is never given twice, so that nobody inherits
CREATE TABLE agents (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    generation INTEGER NOT NULL
);
CREATE TABLE bank (generation INTEGER NOT NULL);
INSERT INTO bank VALUES (0);
-- all vectors of one embedder have one size, in bytes
CREATE TABLE embedders (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, size INTEGER NOT NULL);
-- what is looked for; the lesson itself is the log's row `version`. `embedder` is that of both its vectors
CREATE TABLE lessons (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    agent INTEGER NOT NULL REFERENCES agents,
    version INTEGER NOT NULL,
    id TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    experience TEXT NOT NULL,
    state TEXT NOT NULL,
    success INTEGER NOT NULL,
    confidence REAL NOT NULL,
    created REAL NOT NULL,
    superseded_by TEXT,
    embedder INTEGER,
    terms BLOB NOT NULL
);
CREATE UNIQUE INDEX lessons_by_id ON lessons (id, agent);
CREATE INDEX lessons_by_fingerprint ON lessons (agent, fingerprint);
CREATE INDEX lessons_by_state ON lessons (agent, state);
CREATE INDEX lessons_by_embedder ON lessons (agent, embedder) WHERE state = 'active';
CREATE INDEX lessons_by_successor ON lessons (agent, superseded_by) WHERE superseded_by IS NOT NULL;
-- only ever added to, but for a purge, which leaves its own row with the bare number. `lesson` outlives the lesson
CREATE TABLE log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    agent INTEGER NOT NULL,
    lesson INTEGER NOT NULL,
    at REAL NOT NULL,
    change TEXT NOT NULL,
    schema INTEGER NOT NULL,
    detail TEXT,
    record TEXT
);
CREATE INDEX log_of_agent ON log (agent, seq, lesson);
CREATE INDEX log_of_lesson ON log (lesson, seq);
-- apart, so that a recall writes no lesson anew
CREATE TABLE uses (n INTEGER PRIMARY KEY REFERENCES lessons, uses INTEGER NOT NULL, last_used REAL);
CREATE TABLE vectors (n INTEGER PRIMARY KEY REFERENCES lessons, vector BLOB NOT NULL);
CREATE TABLE query_vectors (n INTEGER PRIMARY KEY REFERENCES lessons, vector BLOB NOT NULL);
-- each pair once, the older lesson as `a`
CREATE TABLE links (
    a INTEGER NOT NULL REFERENCES lessons,
    b INTEGER NOT NULL REFERENCES lessons,
    embedder TEXT NOT NULL,
    similarity REAL NOT NULL,
    PRIMARY KEY (a, b, embedder)
);
CREATE INDEX links_back ON links (b);
-- agent 0: a recall over all agents
CREATE TABLE receipts (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    agent INTEGER NOT NULL,
    schema INTEGER NOT NULL,
    record TEXT NOT NULL,
    UNIQUE (id, agent)
);
-- borrowed: it waits for somebody's answer. The fence rises with each claim
CREATE TABLE work (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    agent INTEGER NOT NULL REFERENCES agents,
    kind TEXT NOT NULL,
    key TEXT,
    status TEXT NOT NULL,
    borrowed INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    created REAL NOT NULL,
    due REAL NOT NULL DEFAULT 0,
    finished REAL,
    owner TEXT NOT NULL DEFAULT '',
    fence INTEGER NOT NULL DEFAULT 0,
    until REAL NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '""',
    result TEXT NOT NULL DEFAULT 'null'
);
CREATE UNIQUE INDEX work_once ON work (agent, kind, key) WHERE key IS NOT NULL AND status <> 'failed';
CREATE INDEX work_queued ON work (kind, n, due) WHERE status = 'queued';
CREATE INDEX work_running ON work (kind) WHERE status = 'running';
CREATE INDEX work_open ON work (agent, status) WHERE status <> 'done';
-- apart, so that a claim does not write it again; gone when the work is done
CREATE TABLE payloads (n INTEGER PRIMARY KEY REFERENCES work, payload TEXT NOT NULL);
