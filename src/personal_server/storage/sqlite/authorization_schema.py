"""The tables of the authorization store.  Source: AS contract 18."""

TABLES = """
CREATE TABLE owner (
    subject_id TEXT NOT NULL,
    password_hash TEXT,
    created_at_ns INTEGER NOT NULL,
    password_changed_at_ns INTEGER,
    PRIMARY KEY (subject_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE owner_links (
    subject_id TEXT NOT NULL,
    link_hash BLOB NOT NULL,
    expires_at_ns INTEGER NOT NULL,
    used_at_ns INTEGER,
    PRIMARY KEY (subject_id, link_hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE owner_sessions (
    subject_id TEXT NOT NULL,
    session_hash BLOB NOT NULL,
    csrf TEXT NOT NULL,
    created_at_ns INTEGER NOT NULL,
    last_seen_at_ns INTEGER NOT NULL,
    signed_in_at_ns INTEGER NOT NULL,
    address TEXT,
    user_agent TEXT,
    ended_at_ns INTEGER,
    PRIMARY KEY (subject_id, session_hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE clients (
    subject_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    client_ref TEXT NOT NULL,
    registration TEXT NOT NULL,
    name TEXT NOT NULL,
    display TEXT NOT NULL,
    redirect_uris TEXT NOT NULL,
    grant_types TEXT NOT NULL,
    auth_method TEXT NOT NULL,
    registered_at_ns INTEGER NOT NULL,
    first_approved_at_ns INTEGER,
    last_used_at_ns INTEGER,
    blocked_at_ns INTEGER,
    PRIMARY KEY (subject_id, client_id),
    UNIQUE (subject_id, client_ref)
) STRICT, WITHOUT ROWID;
CREATE TABLE client_documents (
    subject_id TEXT NOT NULL,
    url TEXT NOT NULL,
    body BLOB NOT NULL,
    digest TEXT NOT NULL,
    fetched_at_ns INTEGER NOT NULL,
    fresh_until_ns INTEGER NOT NULL,
    PRIMARY KEY (subject_id, url)
) STRICT, WITHOUT ROWID;
CREATE TABLE assertion_ids (
    subject_id TEXT NOT NULL,
    jti_hash BLOB NOT NULL,
    expires_at_ns INTEGER NOT NULL,
    PRIMARY KEY (subject_id, jti_hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE introspection_clients (
    subject_id TEXT NOT NULL,
    caller_id TEXT NOT NULL,
    secret_hash BLOB NOT NULL,
    name TEXT NOT NULL,
    created_at_ns INTEGER NOT NULL,
    ended_at_ns INTEGER,
    PRIMARY KEY (subject_id, caller_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE auth_requests (
    subject_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    flow TEXT NOT NULL,
    client_id TEXT NOT NULL,
    origin TEXT NOT NULL,
    resource TEXT NOT NULL,
    scope TEXT NOT NULL,
    redirect_uri TEXT,
    state TEXT,
    code_challenge TEXT,
    details TEXT,
    picker INTEGER NOT NULL,
    display TEXT,
    request_uri_hash BLOB,
    device_code_hash BLOB,
    user_code_hash BLOB,
    status TEXT NOT NULL,
    revision TEXT,
    facts TEXT,
    created_at_ns INTEGER NOT NULL,
    opened_at_ns INTEGER,
    decided_at_ns INTEGER,
    expires_at_ns INTEGER NOT NULL,
    collect_until_ns INTEGER,
    interval_seconds INTEGER NOT NULL,
    last_poll_at_ns INTEGER,
    wrong_tries INTEGER NOT NULL,
    address TEXT,
    user_agent TEXT,
    auth_method TEXT NOT NULL,
    grant_id TEXT,
    package_id TEXT,
    PRIMARY KEY (subject_id, request_id),
    UNIQUE (subject_id, request_uri_hash),
    UNIQUE (subject_id, device_code_hash),
    UNIQUE (subject_id, user_code_hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE review_artifacts (
    subject_id TEXT NOT NULL,
    revision TEXT NOT NULL,
    artifact BLOB NOT NULL,
    request_id TEXT NOT NULL,
    decided_at_ns INTEGER NOT NULL,
    channel TEXT NOT NULL,
    PRIMARY KEY (subject_id, revision)
) STRICT, WITHOUT ROWID;
CREATE TABLE auth_codes (
    subject_id TEXT NOT NULL,
    code_hash BLOB NOT NULL,
    request_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    code_challenge TEXT NOT NULL,
    resource TEXT NOT NULL,
    scope TEXT NOT NULL,
    origin TEXT NOT NULL,
    expires_at_ns INTEGER NOT NULL,
    status TEXT NOT NULL,
    grant_id TEXT,
    package_id TEXT,
    redeemed_at_ns INTEGER,
    family_id TEXT,
    PRIMARY KEY (subject_id, code_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX auth_codes_by_request_id ON auth_codes (subject_id, request_id);
CREATE TABLE grants (
    subject_id TEXT NOT NULL,
    grant_id TEXT NOT NULL,
    grant BLOB NOT NULL,
    client_id TEXT NOT NULL,
    connector_key TEXT NOT NULL,
    access_mode TEXT NOT NULL,
    issued_at_ns INTEGER NOT NULL,
    expires_at_ns INTEGER,
    consumed_at_ns INTEGER,
    revoked_at_ns INTEGER,
    reason TEXT,
    revision TEXT NOT NULL,
    PRIMARY KEY (subject_id, grant_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX grants_by_client_id ON grants (subject_id, client_id);
CREATE INDEX grants_by_revision ON grants (subject_id, revision);
CREATE TABLE grant_packages (
    subject_id TEXT NOT NULL,
    package_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    created_at_ns INTEGER NOT NULL,
    revoked_at_ns INTEGER,
    reason TEXT,
    revision TEXT NOT NULL,
    PRIMARY KEY (subject_id, package_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX grant_packages_by_client_id ON grant_packages (subject_id, client_id);
CREATE TABLE grant_package_members (
    subject_id TEXT NOT NULL,
    package_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    grant_id TEXT NOT NULL,
    PRIMARY KEY (subject_id, package_id, position),
    UNIQUE (subject_id, grant_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE token_families (
    subject_id TEXT NOT NULL,
    family_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    client_id TEXT NOT NULL,
    grant_id TEXT,
    package_id TEXT,
    origin TEXT NOT NULL,
    resource TEXT NOT NULL,
    scope TEXT NOT NULL,
    auth_floor TEXT NOT NULL,
    generation INTEGER NOT NULL,
    last_used_at_ns INTEGER NOT NULL,
    idle_end_ns INTEGER NOT NULL,
    absolute_end_ns INTEGER,
    revoked_at_ns INTEGER,
    reason TEXT,
    PRIMARY KEY (subject_id, family_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX token_families_by_grant_id ON token_families (subject_id, grant_id);
CREATE INDEX token_families_by_package_id ON token_families (subject_id, package_id);
CREATE INDEX token_families_by_client_id ON token_families (subject_id, client_id);
CREATE TABLE refresh_tokens (
    subject_id TEXT NOT NULL,
    token_hash BLOB NOT NULL,
    family_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    superseded_at_ns INTEGER,
    overlap_used_at_ns INTEGER,
    PRIMARY KEY (subject_id, token_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX refresh_tokens_by_family_id ON refresh_tokens (subject_id, family_id);
CREATE TABLE tokens (
    subject_id TEXT NOT NULL,
    token_hash BLOB NOT NULL,
    kind TEXT NOT NULL,
    client_id TEXT NOT NULL,
    grant_id TEXT,
    package_id TEXT,
    family_id TEXT,
    origin TEXT NOT NULL,
    resource TEXT NOT NULL,
    scope TEXT NOT NULL,
    issued_at_ns INTEGER NOT NULL,
    expires_at_ns INTEGER NOT NULL,
    revoked_at_ns INTEGER,
    reason TEXT,
    last_used_at_ns INTEGER,
    PRIMARY KEY (subject_id, token_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX tokens_by_family_id ON tokens (subject_id, family_id);
CREATE INDEX tokens_by_grant_id ON tokens (subject_id, grant_id);
CREATE INDEX tokens_by_package_id ON tokens (subject_id, package_id);
CREATE TABLE audit_events (
    subject_id TEXT NOT NULL,
    event_id INTEGER NOT NULL,
    event TEXT NOT NULL,
    at_ns INTEGER NOT NULL,
    actor TEXT NOT NULL,
    client_id TEXT,
    grant_id TEXT,
    package_id TEXT,
    request_id TEXT,
    address TEXT,
    detail TEXT NOT NULL,
    PRIMARY KEY (subject_id, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX audit_events_by_grant_id ON audit_events (subject_id, grant_id);
CREATE INDEX audit_events_by_package_id ON audit_events (subject_id, package_id);
"""

SHOWN_ARTIFACTS = """
ALTER TABLE auth_requests ADD COLUMN shown TEXT;
UPDATE auth_requests SET revision = NULL, facts = NULL;
"""
"""The artifact shown last stands beside the request; pages shown before are shown once more."""
