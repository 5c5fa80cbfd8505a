-- The layout of the first release.
CREATE TABLE store (
    name {text} PRIMARY KEY,
    value {scalar}
) {by_key};
CREATE TABLE declarations (
    subject_id {text},
    connector_key {text},
    version {text},
    source_kind {text} NOT NULL,
    source_id {text} NOT NULL,
    digest {text} NOT NULL,
    raw {bytes} NOT NULL,
    registered_at {integer} NOT NULL,
    current {flag} NOT NULL,
    PRIMARY KEY (subject_id, connector_key, version)
) {by_number};
CREATE TABLE layouts (
    subject_id {text},
    connector_key {text},
    stream {text},
    layout {text} NOT NULL,
    PRIMARY KEY (subject_id, connector_key, stream)
) {by_key};
CREATE TABLE connections (
    subject_id {text},
    connection_id {text},
    connector_key {text} NOT NULL,
    source_id {text} NOT NULL,
    display_name {text},
    status {text} NOT NULL,
    created_at {integer} NOT NULL,
    updated_at {integer} NOT NULL,
    revoked_at {integer},
    state_updated_at {integer},
    PRIMARY KEY (subject_id, connection_id)
) {by_key};
CREATE TABLE runs (
    subject_id {text},
    connection_id {text},
    run_id {text} NOT NULL,
    status {text} NOT NULL,
    at {integer} NOT NULL,
    succeeded_at {integer},
    PRIMARY KEY (subject_id, connection_id)
) {by_key};
CREATE TABLE bookmarks (
    subject_id {text},
    connection_id {text},
    stream {text},
    value {json} NOT NULL,
    PRIMARY KEY (subject_id, connection_id, stream)
) {by_key};
CREATE TABLE rejections (
    number {numbered},
    subject_id {text} NOT NULL,
    connection_id {text} NOT NULL,
    receipt_id {text} NOT NULL,
    stream {text} NOT NULL,
    code {text} NOT NULL,
    path {text},
    run_id {text},
    at {integer} NOT NULL
) {by_number};
CREATE INDEX rejections_place ON rejections (subject_id, connection_id, number);
CREATE TABLE sources (
    source {numbered},
    subject_id {text} NOT NULL,
    connection_id {text} NOT NULL,
    stream {text} NOT NULL,
    tables {integer} NOT NULL,
    records {integer} NOT NULL,
    layout {text} NOT NULL,
    UNIQUE (subject_id, connection_id, stream)
) {by_number};
CREATE TABLE changes (
    source {integer},
    sequence {integer},
    key {text} NOT NULL,
    was {flag} NOT NULL,
    was_at {scalar},
    now {flag} NOT NULL,
    now_at {scalar},
    fields {json},
    emitted_at {integer} NOT NULL,
    written_at {integer} NOT NULL,
    prev {integer},
    next {integer},
    PRIMARY KEY (source, sequence)
) {by_key};
CREATE TABLE gone (
    source {integer},
    key {text},
    sequence {integer} NOT NULL,
    PRIMARY KEY (source, key)
) {by_key};
CREATE TABLE blob_uploads (
    subject_id {text},
    connection_id {text},
    blob_id {text},
    size_bytes {integer} NOT NULL,
    mime_type {text} NOT NULL,
    uploaded_at {integer} NOT NULL,
    PRIMARY KEY (subject_id, connection_id, blob_id)
) {by_key};
CREATE INDEX blob_uploads_blob ON blob_uploads (blob_id);
CREATE TABLE blob_references (
    source {integer},
    key {text},
    field {text},
    blob_id {text} NOT NULL,
    PRIMARY KEY (source, key, field)
) {by_key};
CREATE INDEX blob_references_blob ON blob_references (blob_id, source, key, field);
CREATE TABLE sealing_keys (
    key_id {numbered},
    subject_id {text} NOT NULL,
    secret {bytes} NOT NULL,
    created_at {integer} NOT NULL
) {by_number};
CREATE TABLE rankings (
    subject_id {text},
    ranking_id {text},
    expires_at {integer} NOT NULL,
    hits {json} NOT NULL,
    PRIMARY KEY (subject_id, ranking_id)
) {by_key};
CREATE TABLE erased (
    source {integer} PRIMARY KEY
) {by_number};

-- Authorization.
CREATE TABLE owner (
    subject_id {text} NOT NULL,
    password_hash {text},
    created_at_ns {integer} NOT NULL,
    password_changed_at_ns {integer},
    PRIMARY KEY (subject_id)
) {by_key};
CREATE TABLE owner_links (
    subject_id {text} NOT NULL,
    link_hash {bytes} NOT NULL,
    expires_at_ns {integer} NOT NULL,
    used_at_ns {integer},
    PRIMARY KEY (subject_id, link_hash)
) {by_key};
CREATE TABLE owner_sessions (
    subject_id {text} NOT NULL,
    session_hash {bytes} NOT NULL,
    csrf {text} NOT NULL,
    created_at_ns {integer} NOT NULL,
    last_seen_at_ns {integer} NOT NULL,
    signed_in_at_ns {integer} NOT NULL,
    address {text},
    user_agent {text},
    ended_at_ns {integer},
    PRIMARY KEY (subject_id, session_hash)
) {by_key};
CREATE TABLE clients (
    subject_id {text} NOT NULL,
    client_id {text} NOT NULL,
    client_ref {text} NOT NULL,
    registration {text} NOT NULL,
    name {text} NOT NULL,
    display {json} NOT NULL,
    redirect_uris {json} NOT NULL,
    grant_types {json} NOT NULL,
    auth_method {text} NOT NULL,
    registered_at_ns {integer} NOT NULL,
    first_approved_at_ns {integer},
    last_used_at_ns {integer},
    blocked_at_ns {integer},
    PRIMARY KEY (subject_id, client_id),
    UNIQUE (subject_id, client_ref)
) {by_key};
CREATE TABLE client_documents (
    subject_id {text} NOT NULL,
    url {text} NOT NULL,
    body {bytes} NOT NULL,
    digest {text} NOT NULL,
    fetched_at_ns {integer} NOT NULL,
    fresh_until_ns {integer} NOT NULL,
    PRIMARY KEY (subject_id, url)
) {by_key};
CREATE TABLE assertion_ids (
    subject_id {text} NOT NULL,
    jti_hash {bytes} NOT NULL,
    expires_at_ns {integer} NOT NULL,
    PRIMARY KEY (subject_id, jti_hash)
) {by_key};
CREATE TABLE introspection_clients (
    subject_id {text} NOT NULL,
    caller_id {text} NOT NULL,
    secret_hash {bytes} NOT NULL,
    name {text} NOT NULL,
    created_at_ns {integer} NOT NULL,
    ended_at_ns {integer},
    PRIMARY KEY (subject_id, caller_id)
) {by_key};
CREATE TABLE auth_requests (
    subject_id {text} NOT NULL,
    request_id {text} NOT NULL,
    flow {text} NOT NULL,
    client_id {text} NOT NULL,
    origin {text} NOT NULL,
    resource {text} NOT NULL,
    scope {text} NOT NULL,
    redirect_uri {text},
    state {text},
    code_challenge {text},
    details {json},
    picker {flag} NOT NULL,
    display {json},
    request_uri_hash {bytes},
    device_code_hash {bytes},
    user_code_hash {bytes},
    status {text} NOT NULL,
    revision {text},
    facts {text},
    created_at_ns {integer} NOT NULL,
    opened_at_ns {integer},
    decided_at_ns {integer},
    expires_at_ns {integer} NOT NULL,
    collect_until_ns {integer},
    interval_seconds {integer} NOT NULL,
    last_poll_at_ns {integer},
    wrong_tries {integer} NOT NULL,
    address {text},
    user_agent {text},
    auth_method {text} NOT NULL,
    grant_id {text},
    package_id {text},
    shown {json},
    PRIMARY KEY (subject_id, request_id),
    UNIQUE (subject_id, request_uri_hash),
    UNIQUE (subject_id, device_code_hash),
    UNIQUE (subject_id, user_code_hash)
) {by_key};
CREATE TABLE review_artifacts (
    subject_id {text} NOT NULL,
    revision {text} NOT NULL,
    artifact {bytes} NOT NULL,
    request_id {text} NOT NULL,
    decided_at_ns {integer} NOT NULL,
    channel {text} NOT NULL,
    PRIMARY KEY (subject_id, revision)
) {by_key};
CREATE TABLE auth_codes (
    subject_id {text} NOT NULL,
    code_hash {bytes} NOT NULL,
    request_id {text} NOT NULL,
    client_id {text} NOT NULL,
    redirect_uri {text} NOT NULL,
    code_challenge {text} NOT NULL,
    resource {text} NOT NULL,
    scope {text} NOT NULL,
    origin {text} NOT NULL,
    expires_at_ns {integer} NOT NULL,
    status {text} NOT NULL,
    grant_id {text},
    package_id {text},
    redeemed_at_ns {integer},
    family_id {text},
    PRIMARY KEY (subject_id, code_hash)
) {by_key};
CREATE INDEX auth_codes_by_request_id ON auth_codes (subject_id, request_id);
CREATE TABLE grants (
    subject_id {text} NOT NULL,
    grant_id {text} NOT NULL,
    grant {bytes} NOT NULL,
    client_id {text} NOT NULL,
    connector_key {text} NOT NULL,
    access_mode {text} NOT NULL,
    issued_at_ns {integer} NOT NULL,
    expires_at_ns {integer},
    consumed_at_ns {integer},
    revoked_at_ns {integer},
    reason {text},
    revision {text} NOT NULL,
    PRIMARY KEY (subject_id, grant_id)
) {by_key};
CREATE INDEX grants_by_client_id ON grants (subject_id, client_id);
CREATE INDEX grants_by_revision ON grants (subject_id, revision);
CREATE TABLE grant_packages (
    subject_id {text} NOT NULL,
    package_id {text} NOT NULL,
    client_id {text} NOT NULL,
    created_at_ns {integer} NOT NULL,
    revoked_at_ns {integer},
    reason {text},
    revision {text} NOT NULL,
    PRIMARY KEY (subject_id, package_id)
) {by_key};
CREATE INDEX grant_packages_by_client_id ON grant_packages (subject_id, client_id);
CREATE TABLE grant_package_members (
    subject_id {text} NOT NULL,
    package_id {text} NOT NULL,
    position {integer} NOT NULL,
    grant_id {text} NOT NULL,
    PRIMARY KEY (subject_id, package_id, position),
    UNIQUE (subject_id, grant_id)
) {by_key};
CREATE TABLE token_families (
    subject_id {text} NOT NULL,
    family_id {text} NOT NULL,
    kind {text} NOT NULL,
    client_id {text} NOT NULL,
    grant_id {text},
    package_id {text},
    origin {text} NOT NULL,
    resource {text} NOT NULL,
    scope {text} NOT NULL,
    auth_floor {text} NOT NULL,
    generation {integer} NOT NULL,
    last_used_at_ns {integer} NOT NULL,
    idle_end_ns {integer} NOT NULL,
    absolute_end_ns {integer},
    revoked_at_ns {integer},
    reason {text},
    PRIMARY KEY (subject_id, family_id)
) {by_key};
CREATE INDEX token_families_by_client_id ON token_families (subject_id, client_id);
CREATE INDEX token_families_by_grant_id ON token_families (subject_id, grant_id);
CREATE INDEX token_families_by_package_id ON token_families (subject_id, package_id);
CREATE TABLE refresh_tokens (
    subject_id {text} NOT NULL,
    token_hash {bytes} NOT NULL,
    family_id {text} NOT NULL,
    generation {integer} NOT NULL,
    superseded_at_ns {integer},
    overlap_used_at_ns {integer},
    PRIMARY KEY (subject_id, token_hash)
) {by_key};
CREATE INDEX refresh_tokens_by_family_id ON refresh_tokens (subject_id, family_id);
CREATE TABLE tokens (
    subject_id {text} NOT NULL,
    token_hash {bytes} NOT NULL,
    kind {text} NOT NULL,
    client_id {text} NOT NULL,
    grant_id {text},
    package_id {text},
    family_id {text},
    origin {text} NOT NULL,
    resource {text} NOT NULL,
    scope {text} NOT NULL,
    issued_at_ns {integer} NOT NULL,
    expires_at_ns {integer} NOT NULL,
    revoked_at_ns {integer},
    reason {text},
    last_used_at_ns {integer},
    PRIMARY KEY (subject_id, token_hash)
) {by_key};
CREATE INDEX tokens_by_grant_id ON tokens (subject_id, grant_id);
CREATE INDEX tokens_by_package_id ON tokens (subject_id, package_id);
CREATE INDEX tokens_by_family_id ON tokens (subject_id, family_id);
CREATE TABLE audit_events (
    subject_id {text} NOT NULL,
    event_id {integer} NOT NULL,
    event {text} NOT NULL,
    at_ns {integer} NOT NULL,
    actor {text} NOT NULL,
    client_id {text},
    grant_id {text},
    package_id {text},
    request_id {text},
    address {text},
    detail {json} NOT NULL,
    PRIMARY KEY (subject_id, event_id)
) {by_key};
CREATE INDEX audit_events_by_grant_id ON audit_events (subject_id, grant_id);
CREATE INDEX audit_events_by_package_id ON audit_events (subject_id, package_id);

-- The disclosure log.
CREATE TABLE disclosures (
    subject_id {text} NOT NULL,
    number {integer} NOT NULL,
    disclosure_id {text} NOT NULL,
    at_ns {integer} NOT NULL,
    request_id {text} NOT NULL,
    outcome {text} NOT NULL,
    error_code {text},
    token_kind {text} NOT NULL,
    client_id {text},
    grant_id {text},
    package_id {text},
    channel {text} NOT NULL,
    tool {text},
    route {text} NOT NULL,
    connector_key {text},
    connection_id {text},
    stream {text},
    fields {json} NOT NULL,
    record_count {integer} NOT NULL,
    size_bytes {integer} NOT NULL,
    PRIMARY KEY (subject_id, number)
) {by_key};
CREATE INDEX disclosures_by_time ON disclosures (subject_id, at_ns);
CREATE INDEX disclosures_by_grant ON disclosures (subject_id, grant_id, at_ns);
