"""Reading by group: rows of groups (`summaries`) in place of the lines of a whole source.

Rule: they are read where every record is visible and asked for, and where the grant shows what
labels and marks the groups.  Else how long it takes would tell how many values a hidden field has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from personal_server.domain.criteria import Grouping
from personal_server.domain.values import ValueKind
from personal_server.storage.sql.compiler import Where
from personal_server.storage.sql.driver import Line
from personal_server.storage.sql.layout import Grouped
from personal_server.storage.sql.segments import (
    Asking,
    Segment,
    Side,
    SummedSegment,
    plain_side,
)
from personal_server.storage.sql.source_tables import ScopedSource
from personal_server.storage.sql.summaries import LONG_TEXT, NO_TEXT, TEXT


@dataclass(frozen=True, slots=True)
class GroupSegment(SummedSegment):
    """Rows of groups of one field; `lines` are what they stand for."""

    letter = "g"
    _: KW_ONLY
    lines: Segment
    kept: Grouped

    def texts(self, number: int, field: str, ask: Asking) -> list[Line]:
        """From the rows, where they hold all of each."""
        found = ask(self, "d.label" if field == self.kept.label else "d.mark")
        if any(text == LONG_TEXT for _, text, _ in found):
            return self.lines.texts(number, field, ask)
        side = self.sides[number]
        return [(side.point_of(value), _text(text), count) for value, text, count in found]

    @property
    def of_whole_strings(self) -> Segment:
        """Rows know strings as columns do."""
        return self.lines.of_whole_strings


def group_segment(place: ScopedSource, groupings: Sequence[Grouping]) -> GroupSegment | None:
    """All records of a source in the groups of one string, perhaps by connection, too; `None`
    where rows cannot tell that.
    """
    named = [each for each in groupings if each.field is not None]
    if not place.is_whole or len(named) != 1:
        return None
    [asked] = named
    for number, kept in enumerate(place.compiler.layout.grouped):
        told = Grouping(kept.field, ValueKind.STRING, label_field=kept.label, mark_field=kept.mark)
        if asked == told:
            lines = Segment(place, place.visible(), tuple(plain_side(place, n) for n in groupings))
            value = Side("d.value", _text, found_of=lambda point: f"{TEXT}{point}")
            sides = [value if side.sql != "NULL" else side for side in lines.sides]
            where = Where(("d.field = ?",), (number,))
            return GroupSegment(place, where, tuple(sides), lines=lines, kept=kept)
    return None


def _text(found: str) -> str | None:
    return None if found == NO_TEXT else found.removeprefix(TEXT)
