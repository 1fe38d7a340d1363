-- what was learned before has no layer
ALTER TABLE lessons ADD COLUMN layer TEXT NOT NULL DEFAULT '';
