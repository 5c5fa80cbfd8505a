-- A collector writes to one connection, and has no grant.
ALTER TABLE tokens ADD COLUMN connection_id {text};
