-- The key that tokens are bound to, by its thumbprint; those of before are bound to none.
ALTER TABLE auth_requests ADD COLUMN jkt {text};
ALTER TABLE auth_codes ADD COLUMN jkt {text};
ALTER TABLE token_families ADD COLUMN jkt {text};
ALTER TABLE tokens ADD COLUMN jkt {text};
ALTER TABLE clients ADD COLUMN dpop_bound {flag} NOT NULL DEFAULT 0;
