-- Which addresses, numbers and handles records mention, and what the owner said of whose they are.
CREATE TABLE mentions (
    source {integer} NOT NULL,
    field {text} NOT NULL,
    key {text} NOT NULL,
    place {integer} NOT NULL,
    kind {text} NOT NULL,
    value {text} NOT NULL,
    name {text},
    PRIMARY KEY (source, field, key, place)
) {by_key};
CREATE INDEX mentions_by_value ON mentions (source, field, kind, value, name);
CREATE TABLE person_corrections (
    subject_id {text} NOT NULL,
    kind {text} NOT NULL,
    value {text} NOT NULL,
    other_kind {text} NOT NULL,
    other_value {text} NOT NULL,
    PRIMARY KEY (subject_id, kind, value, other_kind, other_value)
) {by_key};
