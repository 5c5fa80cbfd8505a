"""Viewing history: the CSV that a streaming service offers for download. Copy me."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import date
from functools import partial

from pdpp_kernel.source_item import Data, SourceItem, SourceRecord, stable_id
from pdpp_sources.common.declaration import StreamForm, day, declaration, key, text, word
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from pdpp_sources.common.text import decoded, one_line

HEADER = b"Title,Date"

# What the owner consents to, what an agent can ask. The kind of a field decides what can be done
# with it: `text` is searched, `word` is grouped, times are filtered, sorted and bucketed.
VIEWINGS = StreamForm(
    "viewings",
    "What you watched",
    "Title and day of every film and episode.",
    [
        key(),
        text("title", "Title of the film or episode", title=True),
        word("series", "Series, if it is an episode", searched=True),
        day("watched_on", "Day it was watched", event=True),
    ],
    time_field="watched_on",
    semantic=["title"],
)


class ViewingsSource:
    """Reads ViewingActivity.csv."""

    connector_key = "viewings"
    declaration: Data = declaration("viewings", "Viewing history", "What you watched.", [VIEWINGS])
    how_to_export = "On the service's page choose Account > Viewing activity > Download all."

    def recognize(self, export: Export) -> Claim | None:
        """Claim by content: the first line of the file."""
        mine = matching(export, lambda head: head.startswith(HEADER), ".csv")
        return claim(mine, "its first line is that of a viewing history")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Stream: one row at a time. Repeats and what lies before `start` are dropped for you."""
        return beginning_at(start, without_repeats(each_member(export, _read_member)))


def _read_member(member: ExportMember) -> Iterator[SourceItem]:
    offset = 0
    with member.open() as stream:  # a damaged file ends here and is reported by `each_member`
        for line in stream:
            position, offset = member.offset + offset, offset + len(line)
            if not line.startswith(HEADER):
                where = member.where(position - member.offset)
                yield from one_record(where, position, partial(_record, line, position))


def _record(line: bytes, position: int) -> Iterator[SourceRecord]:
    """One row. What cannot be used raises BadRecord, is reported, and the next row is read."""
    cells = next(csv.reader([decoded(line)]), list[str]())
    if len(cells) != 2:
        raise BadRecord("bad_record", "a row has a title and a date")
    title = one_line(cells[0])
    data: Data = {
        "id": stable_id("view", title, cells[1]),  # the same on every import: repeating is safe
        "title": title,
        "series": title.partition(":")[0] if ":" in title else None,
        "watched_on": _day(cells[1]),
    }
    yield SourceRecord("viewings", data, position)


def _day(text: str) -> str:
    try:
        return date.fromisoformat(text.strip()).isoformat()
    except ValueError:
        raise BadRecord("bad_date", "the date of the entry cannot be read") from None
