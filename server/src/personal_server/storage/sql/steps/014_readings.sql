-- What was read under a grant or package, in figures; what its owner allows of it; alarms.
CREATE TABLE reading_spans (
    subject_id {text} NOT NULL,
    held_id {text} NOT NULL,
    seconds {integer} NOT NULL,
    start_ns {integer} NOT NULL,
    requests {integer} NOT NULL,
    records {integer} NOT NULL,
    size_bytes {integer} NOT NULL,
    searches {integer} NOT NULL,
    empty_searches {integer} NOT NULL,
    new_words {integer} NOT NULL,
    unknown_keys {integer} NOT NULL,
    PRIMARY KEY (subject_id, held_id, seconds, start_ns)
) {by_key};
CREATE TABLE reading_words (
    subject_id {text} NOT NULL,
    held_id {text} NOT NULL,
    salt {bytes} NOT NULL,
    seen {bytes} NOT NULL,
    ends_at_ns {integer} NOT NULL,
    PRIMARY KEY (subject_id, held_id)
) {by_key};
CREATE TABLE reading_limits (
    subject_id {text} NOT NULL,
    held_id {text} NOT NULL,
    records_per_day {integer},
    bytes_per_day {integer},
    requests_per_day {integer},
    pauses {flag},
    PRIMARY KEY (subject_id, held_id)
) {by_key};
CREATE TABLE reading_alarms (
    subject_id {text} NOT NULL,
    alarm_id {text} NOT NULL,
    held_id {text} NOT NULL,
    client_id {text},
    rule {text} NOT NULL,
    at_ns {integer} NOT NULL,
    detail {json} NOT NULL,
    paused {flag} NOT NULL,
    dismissed_at_ns {integer},
    PRIMARY KEY (subject_id, alarm_id)
) {by_key};
CREATE INDEX reading_alarms_by_held_id ON reading_alarms (subject_id, held_id);
-- Records that the owner planted: nothing in the record itself tells.
CREATE TABLE canaries (
    subject_id {text} NOT NULL,
    connection_id {text} NOT NULL,
    stream {text} NOT NULL,
    key {text} NOT NULL,
    planted_at_ns {integer} NOT NULL,
    disclosed_at_ns {integer},
    disclosed_to {text},
    PRIMARY KEY (subject_id, connection_id, stream, key)
) {by_key};
