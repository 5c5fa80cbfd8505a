-- Since when the server that a run of a feed waits for has said nothing.
ALTER TABLE feeds ADD COLUMN silent_since_ns {integer};
