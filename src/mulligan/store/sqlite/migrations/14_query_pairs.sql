-- what was learned before was no query pair
ALTER TABLE lessons ADD COLUMN pair INTEGER NOT NULL DEFAULT 0;
