-- What was asked and handed out lies beside a line of the log, which holds a commitment to it.
ALTER TABLE disclosures ADD COLUMN commitment {text};
CREATE TABLE disclosure_details (
    subject_id {text} NOT NULL,
    number {integer} NOT NULL,
    at_ns {integer} NOT NULL,
    connection_id {text},
    stream {text},
    salt {bytes} NOT NULL,
    asked {text} NOT NULL,
    keys {json} NOT NULL,
    PRIMARY KEY (subject_id, number)
) {by_key};
CREATE INDEX disclosure_details_of_stream ON disclosure_details (subject_id, connection_id, stream);
