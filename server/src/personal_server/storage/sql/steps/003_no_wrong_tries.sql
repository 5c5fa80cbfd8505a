-- Wrong user codes are counted in memory; nothing was ever written here.
ALTER TABLE auth_requests DROP COLUMN wrong_tries;
