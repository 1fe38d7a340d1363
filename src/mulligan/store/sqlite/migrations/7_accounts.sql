-- what a later episode may be shown of earlier ones
CREATE TABLE accounts (
    n INTEGER PRIMARY KEY,
    agent INTEGER NOT NULL REFERENCES agents,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    schema INTEGER NOT NULL,
    record TEXT NOT NULL,
    UNIQUE (agent, id)
);
CREATE INDEX accounts_of_project ON accounts (agent, project, n);
