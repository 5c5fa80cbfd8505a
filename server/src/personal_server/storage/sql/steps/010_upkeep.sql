-- Which process wrote a change, what its owner erased, which backups are kept, which grants wait.
CREATE TABLE eras (
    start {integer} PRIMARY KEY,
    era {text} NOT NULL
) {by_key};
CREATE TABLE erasures (
    subject_id {text} NOT NULL,
    erasure_id {text} NOT NULL,
    connection_id {text} NOT NULL,
    stream {text},
    key_digest {text},
    at {integer} NOT NULL,
    PRIMARY KEY (subject_id, erasure_id)
) {by_key};
CREATE TABLE backups (
    backup_id {text} PRIMARY KEY,
    path {text} NOT NULL,
    made_at {integer} NOT NULL,
    sequence {integer} NOT NULL,
    size_bytes {integer} NOT NULL,
    sealed {flag} NOT NULL,
    scheduled {flag} NOT NULL
) {by_key};
ALTER TABLE grants ADD COLUMN hold {text} NOT NULL DEFAULT 'none';
