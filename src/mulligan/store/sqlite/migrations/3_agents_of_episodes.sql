-- repeats what the record says, for lists of one agent's episodes
ALTER TABLE episodes ADD COLUMN agent TEXT NOT NULL DEFAULT '';
UPDATE episodes SET agent = coalesce(json_extract(record, '$.agent'), '') WHERE json_valid(record);
CREATE INDEX episodes_of_agent ON episodes (agent);
CREATE INDEX episodes_of_agent_by_id ON episodes (agent, id);
