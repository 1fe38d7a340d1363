CREATE TABLE bench_runs (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    schema INTEGER NOT NULL,
    record TEXT NOT NULL
);
CREATE TABLE bench_cases (
    run INTEGER NOT NULL REFERENCES bench_runs,
    position INTEGER NOT NULL,
    schema INTEGER NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (run, position)
);
CREATE TABLE bench_leases (
    run INTEGER PRIMARY KEY REFERENCES bench_runs,
    owner TEXT NOT NULL,
    fence INTEGER NOT NULL,
    until REAL NOT NULL
);
-- of what a run may take from the journal of another
CREATE INDEX steps_of_models ON steps (request_hash) WHERE key GLOB '*/model.*';
