-- The provider at which a feed signs in by tokens, also where the tokens are lost.
ALTER TABLE feeds ADD COLUMN provider {text};
