-- the kinds of task that were kept as clusters; of an agent's project, the newest count
CREATE TABLE found_kinds (
    n INTEGER PRIMARY KEY,
    agent INTEGER NOT NULL REFERENCES agents,
    project TEXT NOT NULL,
    schema INTEGER NOT NULL,
    record TEXT NOT NULL
);
CREATE INDEX found_kinds_of_project ON found_kinds (agent, project, n);
