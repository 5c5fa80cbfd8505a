"""What of an export a reader took for its own and then never opened.

A reader takes the pictures and documents that lie beside its records, and opens those that its
records speak of. One that nothing speaks of is in no record: the report names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import BinaryIO

from pdpp_kernel.source_item import Skipped, SourceItem
from pdpp_kernel.texts import message
from pdpp_sources.common.export import Export, Opener

_REASON = message("nothing that was read speaks of this file; it was not imported")


def with_unmentioned(
    export: Export, read: Callable[[Export, int], Iterator[SourceItem]], start: int
) -> Iterator[SourceItem]:
    """The items that `read` makes of an export, then a report of each file that it never opened.

    Shapes: an empty file holds nothing; `accounted_for` of the export that `read` gets has each
        file that it opened, and what the reader adds itself.
    """
    accounted_for = {member.name for member in export.members if not member.size_bytes}
    noted = (
        replace(member, opener=partial(_opened, member.opener, accounted_for, member.name))
        for member in export.members
    )
    yield from read(replace(export, members=tuple(noted), accounted_for=accounted_for), start)
    for member in export.members:
        if member.name not in accounted_for:
            yield Skipped(member.name, "unmentioned_file", _REASON, export.total_bytes)


def _opened(opener: Opener, accounted_for: set[str], name: str) -> BinaryIO:
    accounted_for.add(name)
    return opener()
