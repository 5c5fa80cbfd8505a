-- Who is told that something changed, and the hints on their way.
CREATE TABLE event_subscriptions (
    subject_id {text} NOT NULL,
    subscription_id {text} NOT NULL,
    client_id {text} NOT NULL,
    grant_id {text},
    package_id {text},
    callback_url {text} NOT NULL,
    status {text} NOT NULL,
    streams {json} NOT NULL,
    connection_ids {json} NOT NULL,
    secret {bytes} NOT NULL,
    old_secret {bytes},
    old_secret_until_ns {integer},
    seen {integer} NOT NULL,
    challenges {json} NOT NULL,
    tested_at_ns {integer},
    created_at_ns {integer} NOT NULL,
    updated_at_ns {integer} NOT NULL,
    verified_at_ns {integer},
    disabled_reason {text},
    last_delivery_at_ns {integer},
    last_delivery_status {text},
    PRIMARY KEY (subject_id, subscription_id)
) {by_key};
CREATE INDEX event_subscriptions_by_grant_id ON event_subscriptions (subject_id, grant_id);
CREATE TABLE events (
    subject_id {text} NOT NULL,
    event_id {text} NOT NULL,
    subscription_id {text} NOT NULL,
    type {text} NOT NULL,
    connection_id {text},
    stream {text},
    since {integer},
    said {text},
    created_at_ns {integer} NOT NULL,
    due_at_ns {integer},
    attempts {integer} NOT NULL,
    outcome {text},
    done_at_ns {integer},
    PRIMARY KEY (subject_id, event_id)
) {by_key};
CREATE INDEX events_by_subscription_id ON events (subject_id, subscription_id);
CREATE INDEX events_by_due_at_ns ON events (subject_id, due_at_ns);
