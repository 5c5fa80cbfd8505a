"""Labels that an account has for a mail: a line before the mail in its file, members of its record.

Source: docs/contract/feeds.md 10.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

_LINE = b"X-Account-Labels: "


def labels_line(labels: Sequence[str]) -> bytes:
    """The line before a message in a file of its own."""
    return _LINE + json.dumps(list(labels)).encode("ascii") + b"\r\n"


def is_of_account(content: bytes) -> bool:
    """Whether a file begins with that line, so that a message is what follows, whatever it says."""
    return content.startswith(_LINE)


def of_account(content: bytes) -> tuple[bytes, list[str] | None]:
    """A message without that line, and the labels that it holds."""
    if not is_of_account(content):
        return content, None
    line, _, message = content.partition(b"\n")
    try:
        found: object = json.loads(line.removeprefix(_LINE))
    except ValueError:
        return content, None
    texts = cast("list[object]", found) if isinstance(found, list) else []
    return message, [each for each in texts if isinstance(each, str)]


def labels_data(labels: Sequence[str]) -> dict[str, object]:
    """The members of a record that tell labels."""
    return {"labels": list(labels), "labelled": ", ".join(labels) or None}
