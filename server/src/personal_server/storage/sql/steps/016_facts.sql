-- What is said of a store stands beside what is counted of it: each column has one type.
CREATE TABLE facts (
    name {text} PRIMARY KEY,
    said {text} NOT NULL
) {by_key};
INSERT INTO facts SELECT name, value FROM store
    WHERE name NOT IN ('sequence', 'retained_from', 'forgotten_until', 'tables') AND value IS NOT NULL;
DELETE FROM store WHERE name NOT IN ('sequence', 'retained_from', 'forgotten_until', 'tables');
