-- Signs in the type that a database counts different bits of: some seconds for a million passages.
ALTER TABLE passage_signs RENAME TO passage_sign_bytes;
CREATE TABLE passage_signs (
    tables {integer} NOT NULL,
    field {text} NOT NULL,
    id {integer} NOT NULL,
    place {integer} NOT NULL,
    signs {bits} NOT NULL,
    PRIMARY KEY (tables, field, id, place)
) {by_key};
INSERT INTO passage_signs
    SELECT tables, field, id, place, {signs_as_bits} FROM passage_sign_bytes;
DROP TABLE passage_sign_bytes;
