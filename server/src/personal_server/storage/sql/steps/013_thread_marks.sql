-- What records left for others to join their threads by.
CREATE TABLE thread_marks (
    source {integer} NOT NULL,
    mark {text} NOT NULL,
    at {integer} NOT NULL,
    thread {text} NOT NULL,
    PRIMARY KEY (source, mark, at, thread)
) {by_key};
