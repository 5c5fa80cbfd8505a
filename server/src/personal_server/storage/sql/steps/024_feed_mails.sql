-- Which mail of which folder is which record, and what the owner chose for a feed.
ALTER TABLE feeds ADD COLUMN deletions {text} NOT NULL DEFAULT 'keep';
ALTER TABLE feeds ADD COLUMN chosen {json} NOT NULL DEFAULT '[]';
CREATE TABLE feed_mails (
    subject_id {text} NOT NULL,
    feed_id {text} NOT NULL,
    folder {text} NOT NULL,
    uid {integer} NOT NULL,
    copy_of {text} NOT NULL,
    record_key {text} NOT NULL,
    labels {json} NOT NULL,
    code {text},
    gone_at {integer},
    PRIMARY KEY (subject_id, feed_id, folder, uid)
) {by_key};
CREATE INDEX feed_mails_copies ON feed_mails (subject_id, feed_id, copy_of);
CREATE INDEX feed_mails_records ON feed_mails (subject_id, feed_id, record_key);
CREATE INDEX feed_mails_gone ON feed_mails (subject_id, feed_id, gone_at) WHERE gone_at IS NOT NULL;
