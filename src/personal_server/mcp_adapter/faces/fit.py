"""How much of a page fits both faces: the longest preview for all rows, or fewer rows.

Source: MCP adapter contract 6.2, 6.4; decision C20. Nothing is dropped here: when a page does not
fit, the answer is how many rows would.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.evidence.cutting import Measure, least
from personal_server.rs_client.json_values import Json, compact

text_slack = 500
structured_slack = 400
"""Room for what is only known once the page is chosen: first id, a shortening warning."""


@dataclass(frozen=True, slots=True)
class Block:
    """One row or hit in both faces.

    Shapes: row stands in `data`; result in `results` (search); ladder in `content_ladder`.
    """

    id: str
    row: Json
    lines: tuple[str, ...]
    ladder: tuple[Json, ...] = ()
    result: Json | None = None

    @property
    def structured_chars(self) -> int:
        """What the block adds to the structured face."""
        size = len(compact(self.row)) + len(compact(self.id)) + 2
        size += sum(len(compact(entry)) + 1 for entry in self.ladder) if self.result is None else 0
        return size + (len(compact(self.result)) + 1 if self.result is not None else 0)

    @property
    def text_chars(self) -> int:
        """What the block adds to the text face."""
        return sum(len(line) + 1 for line in self.lines)


presumed_cursor_chars = 400
Renderer = Callable[[Json, int, Measure], Block]


@dataclass(frozen=True, slots=True)
class Frame:
    """Characters of both faces before any row stands in them.

    Shapes: has_cursor says whether a cursor is already counted; a shorter page will have one.
    """

    structured_chars: int
    text_chars: int
    has_cursor: bool = True

    def room_for(self, blocks: Sequence[Block]) -> int:
        """How many blocks fit, from the first on."""
        fitting = self._count(blocks, 0)
        if fitting == len(blocks) or self.has_cursor:
            return fitting
        return self._count(blocks, presumed_cursor_chars)

    def _count(self, blocks: Sequence[Block], cursor_chars: int) -> int:
        structured = self.structured_chars + structured_slack + 4 * cursor_chars
        text = self.text_chars + text_slack + 2 * cursor_chars
        for count, block in enumerate(blocks):
            structured += block.structured_chars
            text += block.text_chars
            if structured > budgets.structured_aim or text > budgets.text_aim:
                return count
        return len(blocks)


@dataclass(slots=True)
class Fitting:
    """Rows under measurement; renderings are kept, they are asked for more than once."""

    rows: Sequence[Json]
    renderer: Renderer
    frame: Frame
    rendered: dict[Measure, list[Block]] = field(default_factory=dict[Measure, list[Block]])

    def at(self, measure: Measure) -> list[Block]:
        """All rows at one measure."""
        if measure not in self.rendered:
            blocks = [self.renderer(row, n, measure) for n, row in enumerate(self.rows, 1)]
            self.rendered[measure] = blocks
        return self.rendered[measure]

    def room(self, preview: int) -> int:
        """How many rows fit at one preview length."""
        return self.frame.room_for(self.at(Measure.of(preview)))


def fit_page(fitting: Fitting) -> list[Block] | int:
    """All rows as blocks, or the number of rows (at least 1) that would fit."""
    total = len(fitting.rows)
    kept = fitting.room(budgets.refit_preview)
    if kept < min(budgets.refit_rows, total):
        kept = fitting.room(budgets.short_preview)
    if kept == total:
        return _longest_preview(fitting)
    if total == 1:
        return _one_large_row(fitting)
    return max(kept, 1)


def _longest_preview(fitting: Fitting) -> list[Block]:
    for preview in budgets.previews:
        if fitting.room(preview) == len(fitting.rows):
            return fitting.at(Measure.of(preview))
    return fitting.at(Measure.of(budgets.short_preview))


def _one_large_row(fitting: Fitting) -> list[Block]:
    for measure in (Measure.of(budgets.shortest_preview), least):
        if fitting.frame.room_for(fitting.at(measure)) == 1:
            return fitting.at(measure)
    low, high = 0, _members(fitting.rows[0])
    while low < high:
        middle = (low + high + 1) // 2
        measure = Measure(least.preview, least.compound, middle)
        low, high = (
            (middle, high) if fitting.frame.room_for(fitting.at(measure)) else (low, middle - 1)
        )
    return fitting.at(Measure(least.preview, least.compound, low))


def _members(row: Json) -> int:
    data = row.get("data")
    return len(data) if isinstance(data, dict) else len(row)  # pyright: ignore[reportUnknownArgumentType]
