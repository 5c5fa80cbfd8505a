-- When a feed last brought records, how long it ever brought none, and what its owner was told of it.
ALTER TABLE feeds ADD COLUMN brought_at_ns {integer};
ALTER TABLE feeds ADD COLUMN arrivals {integer} NOT NULL DEFAULT 0;
ALTER TABLE feeds ADD COLUMN longest_silence_ns {integer} NOT NULL DEFAULT 0;
ALTER TABLE feeds ADD COLUMN trouble {text};
