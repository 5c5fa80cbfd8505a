-- An access is called as its owner likes, and a changed one has a successor.
ALTER TABLE auth_requests ADD COLUMN replaces {text};
ALTER TABLE grants ADD COLUMN name {text};
ALTER TABLE grants ADD COLUMN replaces {text};
ALTER TABLE grants ADD COLUMN lineage {text};
CREATE INDEX grants_by_lineage ON grants (subject_id, lineage);
ALTER TABLE grant_packages ADD COLUMN name {text};
ALTER TABLE grant_packages ADD COLUMN replaces {text};
ALTER TABLE grant_packages ADD COLUMN lineage {text};
CREATE INDEX grant_packages_by_lineage ON grant_packages (subject_id, lineage);
