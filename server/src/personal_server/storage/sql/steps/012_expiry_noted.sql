-- When the end of a grant by time was audited; those whose event is there are not told again.
ALTER TABLE grants ADD COLUMN expiry_noted_at_ns {integer};
UPDATE grants SET expiry_noted_at_ns = expires_at_ns
WHERE EXISTS (
    SELECT 1 FROM audit_events a
    WHERE a.subject_id = grants.subject_id AND a.grant_id = grants.grant_id AND a.event = 'grant.expired'
);
