"""What the server takes from the process that parses answers of calendars and address books."""

from __future__ import annotations

import io

import msgspec
import pytest

from pdpp_sources.dav.dav_messages import (
    LONGEST_MARK,
    LONGEST_WORD,
    CollectionEnd,
    ItemSeen,
    receive_from_reader,
)
from pdpp_sources.message_frames import send_message


@pytest.mark.parametrize(
    "said",
    [
        ItemSeen("/a/b.ics", "e" * (LONGEST_MARK + 1), b""),
        ItemSeen(f"/a/{'b' * LONGEST_WORD}", "e", b""),
        CollectionEnd("/a/", "A", None, "t" * (LONGEST_WORD + 1), True, True, True),
    ],
)
def test_overlong_messages_from_a_parser_are_refused(said: msgspec.Struct) -> None:
    sent = io.BytesIO()
    send_message(sent, said)
    sent.seek(0)
    with pytest.raises(msgspec.ValidationError):
        receive_from_reader(sent)
