-- Whether an app may be told when something changes; those that are told already go on.
ALTER TABLE reading_limits ADD COLUMN events {flag};
