-- which work learns from a task that lessons were recalled for; what came of it stands in the work
CREATE TABLE outcomes (
    receipt INTEGER NOT NULL REFERENCES receipts,
    work INTEGER NOT NULL REFERENCES work,
    UNIQUE (receipt, work)
);
CREATE INDEX outcomes_of_work ON outcomes (work);
