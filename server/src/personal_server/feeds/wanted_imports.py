"""What a feed wants imported, as `app/feed_imports.py` sends it to `cli/fed_import.py`."""

from __future__ import annotations

import msgspec


class WantedImport(msgspec.Struct, array_like=True):
    """What to import.

    Shapes: `environment` is all that the command finds its store by; with `lists` the report names
        every record, and so does this file, before it is stored.
    """

    paths: list[str]
    within: str
    account: str | None
    environment: dict[str, str]
    lists: str = ""
