-- Which process waits at the place of a feed for changes.
ALTER TABLE feeds ADD COLUMN watched_by {text};
ALTER TABLE feeds ADD COLUMN watched_until_ns {integer};
