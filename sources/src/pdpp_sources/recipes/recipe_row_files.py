"""The files that rows of a recipe's source name: pictures of a journal, and the like."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

import msgspec
from msgspec.structs import replace

from pdpp_kernel.source_item import Data, SourceItem, SourceRecord
from pdpp_sources.common.attachments import kind_of, with_file
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.text import one_line, or_none
from pdpp_sources.recipes.recipe import Recipe
from pdpp_sources.recipes.recipe_values import value_at, written


def files_beside(members: Iterable[ExportMember], recipe: Recipe) -> set[PurePosixPath]:
    """The folders in which the files of rows lie, seen from the files that hold the rows."""
    patterns = [stream.file for stream in recipe.streams if stream.file]
    roots = {PurePosixPath(member.name).parent for member in members if patterns}
    return {root / pattern.partition("{")[0] for root in roots for pattern in patterns}


def lies_in(member: ExportMember, folders: set[PurePosixPath]) -> bool:
    """Whether a file is one of those that rows may name."""
    return PurePosixPath(member.name).parent in folders


def without_ending(name: str) -> str:
    """The path of a file but for its ending."""
    return str(PurePosixPath(name).with_suffix(""))


class RowFiles(msgspec.Struct, frozen=True):
    """The files beside a file of rows; `members` by their paths without ending."""

    of: ExportMember
    members: Mapping[str, ExportMember]

    def with_file(self, record: SourceRecord, pattern: str, values: Data) -> Iterator[SourceItem]:
        """The record with the bytes of its file, or without them and a report."""
        folder, _, column = pattern.removesuffix("}").partition("{")
        name = PurePosixPath(written(value_at(values, (column,))) or "").name
        path = PurePosixPath(self.of.name).parent / folder / name
        member = self._called(str(path)) if name else None
        filename = one_line(PurePosixPath(member.name).name if member else name, 255)
        facts: Data = {
            "filename": or_none(filename),
            "mime_type": kind_of(filename),
            "size_bytes": None,
        }
        yield from with_file(replace(record, data=record.data | facts), member)

    def _called(self, path: str) -> ExportMember | None:
        return self.members.get(path) or self.members.get(without_ending(path))
