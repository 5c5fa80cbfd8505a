-- Signs of many passages in one value, which are looked at in one pass; made behind the writes.
CREATE TABLE passage_blocks (
    tables {integer} NOT NULL,
    field {text} NOT NULL,
    last {integer} NOT NULL,
    first {integer} NOT NULL,
    ids {bytes} NOT NULL,
    signs {bytes} NOT NULL,
    PRIMARY KEY (tables, field, last)
) {by_key};
