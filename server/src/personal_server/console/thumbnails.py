"""The small picture that a camera puts into a large one.  Pure.

Source: Exif 2.32 (CIPA DC-008) 4.5: the second directory of the TIFF in a JPEG's APP1 segment names
where its thumbnail lies and how long it is; the first how the picture is to be turned.
"""

from __future__ import annotations

import struct

HEAD_BYTES = 128 * 1024
"""Where a thumbnail lies: a segment is at most 64 KiB, and few stand before it."""
_EXIF = b"Exif\x00\x00"
_ORIENTATION, _OFFSET, _LENGTH = 0x0112, 0x0201, 0x0202
_SHORT, _LONG = 3, 4
_MOST_ENTRIES = 500


def embedded_thumbnail(head: bytes) -> bytes | None:
    """The thumbnail of a JPEG that begins so, to be turned as the picture is; none without one."""
    tiff = _exif_of(head)
    if tiff is None:
        return None
    try:
        order = {b"II": "<", b"MM": ">"}[tiff[:2]]
        (first,) = struct.unpack_from(order + "I", tiff, 4)
        own, second = _directory(tiff, first, order)
        small, _ = _directory(tiff, second, order) if second else ({}, 0)
    except (KeyError, struct.error):
        return None
    begin, length = small.get(_OFFSET, 0), small.get(_LENGTH, 0)
    picture = tiff[begin : begin + length]
    if begin <= 0 or len(picture) < length or not picture.startswith(b"\xff\xd8\xff"):
        return None
    turned = own.get(_ORIENTATION, 1)
    return _turned(picture, turned) if 1 < turned <= 8 else picture


def _exif_of(head: bytes) -> bytes | None:
    """The TIFF in the first APP1 segment that holds one."""
    if not head.startswith(b"\xff\xd8"):
        return None
    at = 2
    while at + 4 <= len(head) and head[at] == 0xFF and head[at + 1] not in (0xDA, 0xD9):
        size = int.from_bytes(head[at + 2 : at + 4], "big")
        if size < 2:
            return None
        segment = head[at + 4 : at + 2 + size]
        if head[at + 1] == 0xE1 and segment.startswith(_EXIF):
            return segment[len(_EXIF) :]
        at += 2 + size
    return None


def _directory(tiff: bytes, at: int, order: str) -> tuple[dict[int, int], int]:
    """The numbers of a directory by tag, and where the next one lies.  Raises: struct.error."""
    (count,) = struct.unpack_from(order + "H", tiff, at)
    if count > _MOST_ENTRIES:
        raise struct.error("no directory")
    found: dict[int, int] = {}
    for number in range(count):
        entry = at + 2 + 12 * number
        tag, kind, values = struct.unpack_from(order + "HHI", tiff, entry)
        if values == 1 and kind in (_SHORT, _LONG):
            form = "H" if kind == _SHORT else "I"
            (found[tag],) = struct.unpack_from(order + form, tiff, entry + 8)
    (following,) = struct.unpack_from(order + "I", tiff, at + 2 + 12 * count)
    return found, following


def _turned(picture: bytes, orientation: int) -> bytes:
    """The same with a segment that says how to turn it."""
    entry = struct.pack(">HHIHH", _ORIENTATION, _SHORT, 1, orientation, 0)
    tiff = b"MM\x00\x2a\x00\x00\x00\x08\x00\x01" + entry + b"\x00\x00\x00\x00"
    body = _EXIF + tiff
    segment = b"\xff\xe1" + (len(body) + 2).to_bytes(2, "big") + body
    return picture[:2] + segment + picture[2:]
