"""Pictures as a grid, by the day on which they were taken.  Pure.

Rule: the role `picture` says which field holds one; a grid loads thumbnails, and only those seen.
Source: docs/contract/resource-server.md 17 ("What a stream looks like").
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import cast
from urllib.parse import quote
from zoneinfo import ZoneInfo

import msgspec

from pdpp_kernel.texts import Date, Text, local_moment, moment_of
from pdpp_kernel.values import ValueKind, instant_or_day_ns
from personal_server.console.presentations import picture_field, written_field
from personal_server.console.record_lists import Records, listed_record
from personal_server.console.record_values import PICTURES
from personal_server.console.words import cut
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.timeline import time_field

ALT_CHARS = 200


class GridPicture(msgspec.Struct, frozen=True):
    """A picture; `thumbnail` is none where a browser cannot show it: a film, an unknown form."""

    link: str
    name: Text
    alt: Text
    thumbnail: str | None


class PictureDay(msgspec.Struct, frozen=True):
    """The pictures of a day.  Shapes: `day` is none for those without a time."""

    day: Date | None
    pictures: tuple[GridPicture, ...]


def picture_days(
    root: str, source: ReadableSource, records: Records, zone: ZoneInfo
) -> list[PictureDay]:
    """Pictures under their days where the owner lives, in the order of the records."""
    dated, field = time_field(source), picture_field(source) or ""

    def day_of(record: tuple[str, Mapping[str, object]]) -> Date | None:
        at = record[1].get(dated.name) if dated else None
        at_ns = instant_or_day_ns(at) if isinstance(at, str) else None
        if at_ns is None or dated is None:
            return None
        is_day = dated.kind is ValueKind.DATE
        moment = moment_of(at_ns) if is_day else local_moment(at_ns, zone)
        return Date(moment.date(), "named_day")

    return [
        PictureDay(day, tuple(_picture(root, source, field, *each) for each in group))
        for day, group in groupby(records, key=day_of)
    ]


def _picture(
    root: str, source: ReadableSource, field: str, key: str, data: Mapping[str, object]
) -> GridPicture:
    listed = listed_record(root, source, key, data)
    reference = data.get(field)
    named = cast("dict[str, object]", reference if isinstance(reference, dict) else {})
    written = written_field(source, data)
    words = data.get(written or "")
    alt = cut(words, ALT_CHARS) if isinstance(words, str) and words else listed.name
    is_shown = named.get("mime_type") in PICTURES
    path = f"{listed.link}/files/{quote(field, safe='')}/thumbnail"
    return GridPicture(listed.link, listed.name, alt, path if is_shown else None)
