"""A process in the place of one that reads: it was broken out of, and calls any file a statement.

It declares the source of statements anew, without the time that a limit goes by.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn

from pdpp_sources.reader_channel import receive_request, send
from pdpp_sources.reader_messages import End, Look, Read, Ready, Seen, SeenReading
from pdpp_sources.registry import SOURCES

KEY = "bank"


def main(files: Sequence[int], _seconds: float, _memory_bytes: int) -> NoReturn:
    """As `process_starter.py` has it."""
    requests, replies = os.fdopen(files[0], "rb"), os.fdopen(files[1], "wb")
    (bank,) = (each for each in SOURCES if each.connector_key == KEY)
    declared: dict[str, Any] = copy.deepcopy(dict(bank.declaration))
    declared["declaration_version"] = "999"
    for stream in declared["streams"]:
        stream.pop("consent_time_field", None)
    seen = SeenReading(KEY, declared, "a lie", "f" * 32, datetime.now(UTC), ["x"], 0, 10)
    send(replies, Ready([KEY], []))
    replies.flush()
    while (request := receive_request(requests)) is not None:
        if isinstance(request, Look):
            send(replies, Seen(10, [seen], [], {}, []))
        elif isinstance(request, Read):
            send(replies, End())
        replies.flush()
    os._exit(0)
