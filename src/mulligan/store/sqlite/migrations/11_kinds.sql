-- the kind of task that a lesson was learned from; its record had it before
ALTER TABLE lessons ADD COLUMN kind TEXT NOT NULL DEFAULT '';
UPDATE lessons SET kind = coalesce((
    SELECT json_extract(r.record, '$.kind') FROM log r
    WHERE r.seq = lessons.version AND json_valid(r.record) AND json_type(r.record, '$.kind') = 'text'
), '');
