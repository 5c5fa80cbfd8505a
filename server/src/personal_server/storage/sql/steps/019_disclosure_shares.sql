-- What was given is counted by day, app and stream when it is written.
CREATE TABLE disclosure_shares (
    subject_id {text} NOT NULL,
    day {integer} NOT NULL,
    client_id {text} NOT NULL,
    stream {text} NOT NULL,
    record_count {integer} NOT NULL,
    answer_count {integer} NOT NULL,
    PRIMARY KEY (subject_id, day, client_id, stream)
) {by_key};
INSERT INTO disclosure_shares
    SELECT subject_id, at_ns / 86400000000000, coalesce(client_id, ''), coalesce(stream, ''),
        sum(record_count), count(*)
    FROM disclosures WHERE outcome = 'served' GROUP BY 1, 2, 3, 4;
DROP TABLE disclosure_days;
-- The log of one app, or of one stream, is paged on an index.
CREATE INDEX disclosures_of_client ON disclosures (subject_id, client_id, number);
CREATE INDEX disclosures_of_stream ON disclosures (subject_id, stream, number);
