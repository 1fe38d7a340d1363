-- what was learned before was a strategy
ALTER TABLE lessons ADD COLUMN fact INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lessons ADD COLUMN project TEXT NOT NULL DEFAULT '';
ALTER TABLE lessons ADD COLUMN subject TEXT NOT NULL DEFAULT '';
CREATE INDEX lessons_by_subject ON lessons (agent, project, subject) WHERE fact;
