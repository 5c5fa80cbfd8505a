"""How many entries an export that a recipe reads holds, counted by the plainest means there are.

Of JSON what stands once in every entry is counted as text; of CSV the rows.
"""

from __future__ import annotations

import re

from sources.tests.accounting import rows_of
from sources.tests.specimens.files import Files

# What stands once in each entry of a recipe's files of JSON, whole or broken.
_ONCE_IN_JSON = {
    "dayone": rb'"creationDate"|"text": "without|"(?:photo|video|audio|pdfAttachment)s": \[\{'
    rb'|\}, \{"type"',
    "discord": rb'"id": "\d+", "(?:type|recipients)"|"Timestamp"',
    "discord_channels": rb'"topic"|"timestamp"',
    "googlechat": rb'"members"|"created_date"|"deleted_date"',
    "spotify": rb'"ts"|"endTime"|"lastModifiedDate"|"addedDate"|"artist":',
    "tiktok": rb'"[Dd]ate"',
    "trakt": rb'"(?:watched|rated|listed)_at"',
    "twitter": rb'\{"(?:tweet|other|like|follower|following|dmConversation|messageCreate'
    rb'|joinConversation)"',
}
_NO_ENTRY = re.compile(r"(?:photos|videos|audios|pdfs)/")  # the files of entries


def entries_of_recipe(key: str, files: Files) -> int:
    """How many entries the files of a recipe's export hold."""
    counted = 0
    for name, body in files.items():
        if name.endswith(".csv"):
            counted += len(rows_of(body)) - 1
        elif not _NO_ENTRY.match(name):
            counted += len(re.findall(_ONCE_IN_JSON[key], body))
    return counted
