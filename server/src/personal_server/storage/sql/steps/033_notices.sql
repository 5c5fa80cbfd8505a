-- What the owner is told unasked: what stands, by which channels it is told, and when not.
CREATE TABLE notices (
    subject_id {text} NOT NULL,
    kind {text} NOT NULL,
    about {text} NOT NULL,
    name {text} NOT NULL,
    at_ns {integer} NOT NULL,
    noticed_at_ns {integer} NOT NULL,
    told {json} NOT NULL,
    PRIMARY KEY (subject_id, kind, about)
) {by_key};
CREATE TABLE notice_channels (
    subject_id {text} NOT NULL,
    channel_id {text} NOT NULL,
    kind {text} NOT NULL,
    name {text} NOT NULL,
    address {text} NOT NULL,
    secret {bytes},
    created_at_ns {integer} NOT NULL,
    told {json} NOT NULL,
    test_asked {flag} NOT NULL,
    failures {integer} NOT NULL,
    failing_since_ns {integer},
    due_at_ns {integer} NOT NULL,
    tried_at_ns {integer},
    outcome {text},
    PRIMARY KEY (subject_id, channel_id)
) {by_key};
CREATE TABLE notice_settings (
    subject_id {text} NOT NULL,
    quiet_from {integer},
    quiet_until {integer},
    kinds_off {json} NOT NULL,
    push_key {bytes},
    PRIMARY KEY (subject_id)
) {by_key};
