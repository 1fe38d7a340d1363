-- the least version that a program has to know to use the store (design/112)
ALTER TABLE version ADD COLUMN readable_from integer NOT NULL DEFAULT 4;
