-- Lines of before have no link: the chain begins with the first that has one.
ALTER TABLE disclosures ADD COLUMN link {bytes};
ALTER TABLE audit_events ADD COLUMN link {bytes};
CREATE TABLE log_heads (
    subject_id {text},
    log {text},
    number {integer},
    link {bytes} NOT NULL,
    at_ns {integer} NOT NULL,
    is_cut {flag} NOT NULL,
    signature {bytes},
    PRIMARY KEY (subject_id, log, number)
) {by_key};
