-- Passages of texts as vectors, by which they are found by meaning, and how far they were made.
CREATE TABLE passages (
    tables {integer} NOT NULL,
    field {text} NOT NULL,
    id {integer} NOT NULL,
    place {integer} NOT NULL,
    start {integer} NOT NULL,
    stop {integer} NOT NULL,
    vector {bytes} NOT NULL,
    PRIMARY KEY (tables, field, id, place)
) {by_key};
CREATE TABLE passage_signs (
    tables {integer} NOT NULL,
    field {text} NOT NULL,
    id {integer} NOT NULL,
    place {integer} NOT NULL,
    signs {bytes} NOT NULL,
    PRIMARY KEY (tables, field, id, place)
) {by_key};
CREATE TABLE passage_indexes (
    tables {integer} NOT NULL,
    fields {json} NOT NULL,
    position {integer},
    since {integer} NOT NULL,
    PRIMARY KEY (tables)
) {by_key};
