-- `record` is the episode as created; what became of it is the fold of its events
CREATE TABLE episodes (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    run TEXT NOT NULL,
    schema INTEGER NOT NULL,
    record TEXT NOT NULL
);
CREATE INDEX episodes_of_run ON episodes (run);
CREATE TABLE events (
    episode INTEGER NOT NULL REFERENCES episodes,
    seq INTEGER NOT NULL,
    schema INTEGER NOT NULL,
    event TEXT NOT NULL,
    PRIMARY KEY (episode, seq)
);
-- a row outlives its lease, so that the fence keeps rising; `owner` is empty when nobody holds it
CREATE TABLE leases (
    episode INTEGER PRIMARY KEY REFERENCES episodes,
    owner TEXT NOT NULL,
    fence INTEGER NOT NULL,
    until REAL NOT NULL
);
-- n is never given twice, so that it keeps the order in which the steps were begun
CREATE TABLE steps (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    episode INTEGER NOT NULL REFERENCES episodes,
    key TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    request TEXT NOT NULL,
    UNIQUE (episode, key)
);
-- a step is done when its result is here; apart, so that finishing one does not write the request again
CREATE TABLE results (step INTEGER PRIMARY KEY REFERENCES steps, result TEXT NOT NULL);
CREATE TABLE texts (sha256 TEXT NOT NULL UNIQUE, content BLOB NOT NULL);
CREATE TABLE files (
    episode INTEGER NOT NULL REFERENCES episodes,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL REFERENCES texts (sha256),
    PRIMARY KEY (episode, name)
);
