-- Word indexes of before know words of all fields together; they are made anew in the background.
ALTER TABLE sources ADD COLUMN unindexed_below {integer};
UPDATE sources SET unindexed_below = 9223372036854775807;
-- References by their field before their key: those of fields that are not granted are never met.
DROP INDEX blob_references_blob;
CREATE INDEX blob_references_blob ON blob_references (blob_id, source, field, key);
-- Rankings of searches are not stored any more.
DROP TABLE rankings;
