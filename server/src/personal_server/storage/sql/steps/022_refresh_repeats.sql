-- From which network a refresh token was first redeemed, and how often its answer was given again.
ALTER TABLE refresh_tokens ADD COLUMN superseded_from {text};
ALTER TABLE refresh_tokens ADD COLUMN repeats {integer} NOT NULL DEFAULT 0;
