"""What an import would store, counted without storing anything."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import orjson

from pdpp_kernel.source_declaration import SourceDeclaration
from pdpp_kernel.source_item import Data, Skipped
from personal_server.collecting.imports import ImportTally
from personal_server.collecting.ingest import LineChecker, LineRefused
from personal_server.collecting.readable_export import ReadableExport


class SurveyTally(ImportTally):
    """What an import would do.

    Shapes: `first` is the first record of each stream, to look at.
    """

    first: dict[str, Data] = msgspec.field(default_factory=dict[str, Data])


def survey(
    reading: ReadableExport, declaration: SourceDeclaration, show_place: Callable[[int], None]
) -> SurveyTally:
    """Read and check everything, store nothing: what an import would bring."""
    tally = SurveyTally()
    emitted_at = reading.captured_at.isoformat()
    checkers = {name: LineChecker(stream) for name, stream in declaration.streams.items()}
    for item in reading.items():
        show_place(item.position)
        if isinstance(item, Skipped):
            tally.skip(item)
            continue
        tally.of(item.stream).read += 1
        if not declaration.is_of_own_file:  # of which the columns are shown
            tally.first.setdefault(item.stream, item.data)
        tally.widen_span(item, declaration.streams[item.stream].consent_time_field)
        try:
            line = orjson.dumps({"data": item.data, "emitted_at": emitted_at})
            checkers[item.stream].check(line)
        except LineRefused as refused:
            tally.of(item.stream).rejected += 1
            path = f"{item.stream}{refused.path or ''}"
            tally.skip(Skipped(path, refused.code, refused.message, item.position))
    return tally
