-- What an owner has chosen so far stands with its request.
ALTER TABLE auth_requests ADD COLUMN choices {text};
