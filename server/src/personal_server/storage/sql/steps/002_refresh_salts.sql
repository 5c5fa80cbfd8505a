-- What superseded a token before has no salt, and cannot be given again.
ALTER TABLE refresh_tokens ADD COLUMN salt {bytes};
ALTER TABLE refresh_tokens DROP COLUMN overlap_used_at_ns;
