-- what is counted of the arms of strategies that learn; kind '': over all kinds. at: when it last changed
CREATE TABLE arms (
    n INTEGER PRIMARY KEY,
    model TEXT NOT NULL,
    kind TEXT NOT NULL,
    arm TEXT NOT NULL,
    tried INTEGER NOT NULL,
    passed INTEGER NOT NULL,
    won REAL NOT NULL,
    lost REAL NOT NULL,
    at REAL NOT NULL,
    UNIQUE (model, kind, arm)
);
