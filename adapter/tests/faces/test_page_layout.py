"""A page is measured as far as it fits; the outcome is as if everything had been measured."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_mcp_server import contract
from pdpp_mcp_server.faces.page_layout import Block, Fitting, PageHead, fit_page
from pdpp_mcp_server.faces.truncation import Measure

Json = dict[str, Any]
frame = PageHead(500, 100)


@dataclass(slots=True)
class Tally:
    """Renders rows that hold one text, and remembers how often."""

    rendered: list[tuple[int, Measure]] = field(default_factory=list[tuple[int, Measure]])

    def item(self, row: Json, number: int) -> "Text":
        return Text(self, row, number)

    def times(self, number: int) -> int:
        return sum(1 for shown, _ in self.rendered if shown == number)


@dataclass(frozen=True, slots=True)
class Text:
    tally: Tally
    row: Json
    number: int

    @property
    def members(self) -> int:
        return 1

    @property
    def texts(self) -> list[str]:
        return []

    def reach(self) -> int:
        return len(self.row["body"])

    def at(self, measure: Measure) -> Block:
        self.tally.rendered.append((self.number, measure))
        return block_of(self.row, self.number, measure)


def block_of(row: Json, number: int, measure: Measure) -> Block:
    body = row["body"]
    shown = body if len(body) <= measure.preview else body[: measure.preview] + "…"
    return Block(f"m{number}", {"body": shown}, (f"[{number}] m{number}", shown))


def rows_of(sizes: Sequence[int]) -> list[Json]:
    return [{"body": "w" * size} for size in sizes]


def eagerly(rows: Sequence[Json]) -> list[Block] | int:
    """The rule, read aloud: every row at every measure."""

    def at(preview: int) -> list[Block]:
        return [block_of(row, n, Measure.of(preview)) for n, row in enumerate(rows, 1)]

    def room(preview: int) -> int:
        blocks = at(preview)
        return frame.room_for(lambda: blocks, len(blocks))

    kept = room(300)
    if kept < min(5, len(rows)):
        kept = room(120)
    if kept < len(rows):
        return max(kept, 1)
    return at(next(preview for preview in contract.PREVIEWS if room(preview) == len(rows)))


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from([5, 130, 290, 310, 700, 3_000, 9_000]), min_size=2, max_size=60))
def test_measuring_no_further_than_needed_changes_nothing(sizes: list[int]) -> None:
    rows = rows_of(sizes)
    assert fit_page(Fitting(rows, Tally().item, frame)) == eagerly(rows)


def test_rows_beyond_the_budget_are_not_rendered() -> None:
    tally = Tally()
    kept = fit_page(Fitting(rows_of([2_000] * 100), tally.item, frame))
    assert isinstance(kept, int)
    assert len(tally.rendered) == kept + 1


def test_a_shorter_page_uses_what_was_rendered() -> None:
    tally = Tally()
    first = Fitting(rows_of([2_000] * 100), tally.item, frame)
    kept = fit_page(first)
    assert isinstance(kept, int)
    tally.rendered.clear()
    shorter = fit_page(first.again(rows_of([2_000] * kept), frame))
    assert isinstance(shorter, list)
    assert (kept, Measure.of(300)) not in tally.rendered


def test_a_changed_row_is_rendered_anew() -> None:
    first = Fitting(rows_of([50, 50]), Tally().item, frame)
    fit_page(first)
    again = fit_page(first.again(rows_of([50, 60]), frame))
    assert isinstance(again, list)
    assert again[1].row == {"body": "w" * 60}


def test_a_row_that_is_never_cut_is_rendered_once() -> None:
    tally = Tally()
    fit_page(Fitting(rows_of([200, *[3_000] * 12]), tally.item, frame))
    assert tally.times(1) == 1
