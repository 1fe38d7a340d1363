-- from when on a lesson is not recalled any more
ALTER TABLE lessons ADD COLUMN expires double precision;
