"""Long pages of HTML, cut at the elements that repeat in them while they stream by."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pdpp_kernel.texts import message
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import ExportMember

CHUNK_BYTES = 1024 * 1024
LARGEST_PIECE_BYTES = 4 * 1024 * 1024
_LONGEST_MARK_BYTES = 512


def page_pieces(member: ExportMember, mark: re.Pattern[bytes]) -> Iterator[tuple[int, bytes]]:
    """What stands before the first mark, then each piece from a mark to the next, with its place.

    Shapes: a mark begins an element, and is shorter than half a kilobyte.
    Units: places in bytes from the begin of the page.
    Raises: BadRecord, if a piece is too large; MemberDamaged.
    """
    buffer, offset, searched = b"", 0, 0
    with member.open() as stream:
        while chunk := stream.read(CHUNK_BYTES):
            buffer += chunk
            while found := mark.search(buffer, searched):
                yield offset, buffer[: found.start()]
                buffer, offset = buffer[found.start() :], offset + found.start()
                searched = 1
            searched = max(searched, len(buffer) - _LONGEST_MARK_BYTES)
            if len(buffer) > LARGEST_PIECE_BYTES:
                raise BadRecord(
                    "too_large", message("an entry is too large; the rest was not read")
                )
    yield offset, buffer
