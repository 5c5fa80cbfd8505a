CREATE TABLE passkeys (
    subject_id {text} NOT NULL,
    credential_id {bytes} NOT NULL,
    public_key {bytes} NOT NULL,
    sign_count {integer} NOT NULL,
    relying_party {text} NOT NULL,
    name {text} NOT NULL,
    created_at_ns {integer} NOT NULL,
    last_used_at_ns {integer},
    PRIMARY KEY (subject_id, credential_id)
) {by_key};
-- What the owner signed when deciding; without a passkey there is nothing.
ALTER TABLE review_artifacts ADD COLUMN signature {json};
