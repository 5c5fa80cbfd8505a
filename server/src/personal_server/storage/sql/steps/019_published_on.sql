-- The day of a client's document that could not be fetched.
ALTER TABLE clients ADD COLUMN published_on {text};
