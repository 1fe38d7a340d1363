-- what facts are looked up by when something is learned (`Addition.keys`)
CREATE TABLE keys (
    lesson INTEGER NOT NULL REFERENCES lessons,
    key TEXT NOT NULL,
    UNIQUE (key, lesson)
);
CREATE INDEX keys_of_lesson ON keys (lesson);
DROP INDEX lessons_by_subject;
CREATE INDEX facts_of_project ON lessons (agent, project, state) WHERE fact;
