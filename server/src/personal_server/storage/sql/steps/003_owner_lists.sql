-- Long lists are paged and counted on an index, without reading a grant, a client or an event.
CREATE INDEX grants_by_time ON grants
    (subject_id, issued_at_ns, grant_id, client_id, reason, expires_at_ns);
CREATE INDEX clients_by_time ON clients
    (subject_id, registered_at_ns, client_ref, first_approved_at_ns, blocked_at_ns, registration);
CREATE INDEX audit_events_by_event ON audit_events (subject_id, event, event_id);
CREATE INDEX disclosures_of_grant ON disclosures (subject_id, grant_id, number);
CREATE INDEX disclosures_of_package ON disclosures (subject_id, package_id, number);

-- What pages tell of days is counted when it is written: half a second for a million disclosures.
CREATE TABLE disclosure_days (
    subject_id {text} NOT NULL,
    day {integer} NOT NULL,
    record_count {integer} NOT NULL,
    PRIMARY KEY (subject_id, day)
){by_key};
INSERT INTO disclosure_days
    SELECT subject_id, at_ns / 86400000000000, sum(record_count)
    FROM disclosures WHERE outcome = 'served' GROUP BY 1, 2;
