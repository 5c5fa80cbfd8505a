-- When the sign-in of a feed ends, where its provider said so.
ALTER TABLE feeds ADD COLUMN sign_in_ends_ns {integer};
