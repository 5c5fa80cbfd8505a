CREATE TABLE rebuilds (
    source {integer} NOT NULL,
    tables {integer} NOT NULL,
    layout {text} NOT NULL,
    position {integer},
    since {integer} NOT NULL,
    copied {integer} NOT NULL,
    emptying {flag} NOT NULL,
    PRIMARY KEY (source, tables)
) {by_key};
