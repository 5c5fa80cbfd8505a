-- Of each change a digest of every value that a grant may be limited by, as the record held it before.
ALTER TABLE changes ADD COLUMN was_held {text};
