"""The kinds of feeds: what a feed looks at.

Shapes: each is the word that `FeedRow.kind` keeps.
Source: docs/contract/feeds.md 2.
"""

from __future__ import annotations

from types import MappingProxyType

from personal_server.storage import feed_rows

FOLDER_KIND = feed_rows.FOLDER_KIND
MAILBOX = "mailbox"
JMAP = "jmap"
MAIL_KINDS = (MAILBOX, JMAP)
DAV_KINDS = CALENDARS, ADDRESS_BOOKS = "caldav", "carddav"
ACCOUNT_KINDS = (*MAIL_KINDS, *DAV_KINDS)
SOURCES = MappingProxyType(
    {MAILBOX: "mail", JMAP: "mail", CALENDARS: "calendar", ADDRESS_BOOKS: "contacts"}
)
"""The source that reads what was fetched, by the kind of account."""
