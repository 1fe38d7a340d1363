-- the outcome of the task that a recall served, once it was counted; NULL: not known
ALTER TABLE receipts ADD COLUMN success INTEGER;
-- what is counted of a lesson, or of the agent's whole bank (lesson 0). since: recalls before it showed another text.
-- positive: the probability that showing it helps. told: 0 while nobody has been told that it was retired for harm
CREATE TABLE worth (
    lesson INTEGER NOT NULL,
    agent INTEGER NOT NULL REFERENCES agents,
    since REAL NOT NULL DEFAULT 0,
    schema INTEGER NOT NULL,
    record TEXT NOT NULL,
    positive REAL,
    told INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (lesson, agent)
);
CREATE INDEX worth_of_agent ON worth (agent);
CREATE INDEX worth_to_tell ON worth (agent) WHERE NOT told;
