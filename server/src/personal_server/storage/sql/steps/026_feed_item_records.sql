-- Which records an item of an account of calendars or contacts was read as.
ALTER TABLE feed_items ADD COLUMN record_keys {json} NOT NULL DEFAULT '[]';
