"""How much of a page fits both faces: the longest preview for all rows, or fewer rows.

Source: docs/contract/mcp-adapter.md 6.2, 6.4; docs/decisions.md C20. Nothing is dropped here: when
a page does not fit, the answer is how many rows would. Rows are rendered as they are measured, and
no further than the budget reaches.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from pdpp_mcp_server import contract
from pdpp_mcp_server.faces.content_ladder import without_twin
from pdpp_mcp_server.faces.text import length
from pdpp_mcp_server.faces.truncation import Measure, largest, least_chars
from pdpp_mcp_server.kept_values import kept_property
from pdpp_mcp_server.rs_client.json_values import Json, compact
from pdpp_mcp_server.safe_text import clean

# The problem: `/v1` answered with N rows, and both faces of the result have a budget (by default
# 12,000 characters of text, 20,000 structured).  How much of each row is shown?
#
#   in:   40 mails, some with bodies of 30,000 characters
#   out:  blocks of all 40 rows, each long field cut to the same preview (say 600 characters, the
#         rest reachable by `content_ladder`) …
#         or 23: so many rows fit at the shortest preview worth reading, ask `/v1` for these.
#
# A *measure* says how much of a row is shown: the characters of a long field, of a compound one,
# and how many members.  Measures are tried from the longest on (`LONG`, then `SHORT`, `SHORTEST`,
# `LEAST`); the first at which all rows fit is taken, so no row is cut more than its neighbours.
# Rows are rendered one by one while they fit, and a rendering is kept: a mail of three lines is the
# same block at every measure, so most rows are rendered once however many measures are tried.

TEXT_SLACK = 500
STRUCTURED_SLACK = 400
"""Room for what is only known once the page is chosen: first id, a shortening warning."""
PRESUMED_CURSOR_CHARS = 400

LONG = tuple(
    Measure.of(preview) for preview in contract.PREVIEWS if preview >= contract.REFIT_PREVIEW
)
"""The measures at which a page of several rows is shown, the longest first."""
REFIT = LONG[-1]
SHORT = Measure.of(contract.SHORT_PREVIEW)
SHORTEST = Measure.of(contract.SHORTEST_PREVIEW)
LEAST = Measure(contract.SHORTEST_PREVIEW, 0)


class Block(msgspec.Struct, frozen=True, dict=True):
    """One row or hit in both faces.

    Shapes: row stands in `data`; result in `results` (search); ladder in `content_ladder`; the id
            in `record_ids`, if it is listed.
    """

    id: str
    row: Json
    lines: tuple[str, ...]
    ladder: tuple[Json, ...] = ()
    result: Json | None = None
    is_listed: bool = True

    @kept_property
    def structured_chars(self) -> int:
        """What the block adds to the structured face."""
        size = len(compact(self.row)) + 1
        if self.is_listed:
            size += len(compact(self.id)) + 1
        if self.result is not None:
            return size + len(compact(self.result)) + 1
        return size + sum(len(compact(without_twin(entry))) + 1 for entry in self.ladder)

    @kept_property
    def text_chars(self) -> int:
        """What the block adds to the text face."""
        return length(self.lines)


class Item(Protocol):
    """One row or hit, ready to be rendered at any measure."""

    @property
    def members(self) -> int:
        """How many members its payload has."""
        ...

    def reach(self) -> int:
        """The preview length from which on nothing of it is cut."""
        ...

    @property
    def texts(self) -> list[str]:
        """Its texts that may be cut."""
        ...

    def at(self, measure: Measure) -> Block:
        """Both faces of it."""
        ...


Renderer = Callable[[Json, int], Item]
"""Makes the item of a row, given its number on the page."""


class PageHead(msgspec.Struct, frozen=True):
    """Characters of both faces before any row stands in them.

    Shapes: has_cursor says whether a cursor is already counted; a shorter page will have one.
    """

    structured_chars: int
    text_chars: int
    has_cursor: bool = True
    budget: contract.ResultBudget = msgspec.field(default_factory=contract.ResultBudget)

    def room_for(self, blocks: Callable[[], Iterable[Block]], total: int) -> int:
        """How many of total blocks fit, from the first on; drawn no further than they fit."""
        fitting = self._count(blocks(), 0)
        if fitting == total or self.has_cursor:
            return fitting
        return self._count(blocks(), PRESUMED_CURSOR_CHARS)

    def may_hold(self, least_chars: int) -> bool:
        """Whether there may be room for blocks that come to so much in each face, or to more."""
        structured = self.structured_chars + STRUCTURED_SLACK + least_chars
        text = self.text_chars + TEXT_SLACK + least_chars
        return structured <= self.budget.structured_aim and text <= self.budget.text_aim

    def _count(self, blocks: Iterable[Block], cursor_chars: int) -> int:
        # A cursor stands four times in the structured face (envelope, `next` and its arguments) and
        # twice in the text.
        structured = self.structured_chars + STRUCTURED_SLACK + 4 * cursor_chars
        text = self.text_chars + TEXT_SLACK + 2 * cursor_chars
        structured_aim, text_aim = self.budget.structured_aim, self.budget.text_aim
        count = 0
        for block in blocks:
            structured += block.structured_chars
            text += block.text_chars
            if structured > structured_aim or text > text_aim:
                break
            count += 1
        return count


class Rendering(msgspec.Struct):
    """One row under measurement; what was rendered once is kept.

    Shapes: whole is the smallest measure that cuts nothing of it.
    """

    row: Json
    item: Item
    whole: Measure
    blocks: dict[Measure, Block] = msgspec.field(default_factory=dict[Measure, Block])

    def at(self, measure: Measure) -> Block:
        """The row at one measure; all measures at which nothing is cut are one."""
        uncut = measure.compound >= measure.preview >= self.whole.preview
        if uncut and measure.members is None:
            measure = self.whole
        block = self.blocks.get(measure)
        if block is None:
            block = self.blocks[measure] = self.item.at(measure)
        return block


class Fitting(msgspec.Struct):
    """The rows of one page under measurement.

    Shapes: known are renderings of an earlier response; equal rows at equal indices are not
            rendered again; texts are the sizes of those of all rows, and how much
            of each a face shows, once they are looked at.
    """

    rows: Sequence[Json]
    renderer: Renderer
    frame: PageHead
    known: Sequence[Rendering] = ()
    renderings: list[Rendering] = msgspec.field(default_factory=list[Rendering])
    texts: list[tuple[int, int]] | None = None

    def again(
        self, rows: Sequence[Json], frame: PageHead, renderer: Renderer | None = None
    ) -> "Fitting":
        """Another response to the same query; what was rendered for this one is used again.

        Shapes: renderer where rows of the response are rendered otherwise than those of this one.
        """
        if renderer is not None:
            return Fitting(rows, renderer, frame)
        return Fitting(rows, self.renderer, frame, self.renderings)

    def at(self, measure: Measure) -> Iterator[Block]:
        """The rows at one measure, each rendered when it is drawn."""
        return (self._rendering(index).at(measure) for index in range(len(self.rows)))

    def room(self, measure: Measure) -> int:
        """How many rows fit at one measure."""
        return self.frame.room_for(lambda: self.at(measure), len(self.rows))

    def may_fit(self, measure: Measure) -> bool:
        """Whether all rows may fit at one measure: where their texts alone do not, none is
        rendered to find out.
        """
        if self.texts is None:
            renderings = map(self._rendering, range(len(self.rows)))
            texts = [text for rendering in renderings for text in rendering.item.texts]
            is_small = self.frame.may_hold(sum(map(len, texts)))
            # most pages hold so little that no text is looked at for it
            self.texts = [] if is_small else [(len(text), len(clean(text))) for text in texts]
        return self.frame.may_hold(least_chars(self.texts, measure.preview))

    def _rendering(self, index: int) -> Rendering:
        if index < len(self.renderings):
            return self.renderings[index]
        row = self.rows[index]
        if index < len(self.known) and self.known[index].row == row:
            found = self.known[index]
        else:
            item = self.renderer(row, index + 1)
            found = Rendering(row, item, Measure.of(item.reach()))
        self.renderings.append(found)
        return found

    def most_members(self) -> int:
        """How many members the payload of a row has at most."""
        return max(self._rendering(index).item.members for index in range(len(self.rows)))


def fit_page(fitting: Fitting, *, whole: bool = False) -> list[Block] | int:
    """All rows as blocks, or the number of rows (at least 1) that would fit.

    Shapes: whole says that the server ended the page where it was told to, so that every row of it
            is shown, if need be in less of each.
    """
    total = len(fitting.rows)
    # a page that the server ended fits most of the time, and so do a few rows; of many others it is
    # known first whether they do, before any is rendered at length
    is_likely = whole or total <= contract.REFIT_ROWS
    kept = total if is_likely else fitting.room(REFIT)
    for measure in LONG if kept == total else ():
        if measure is not REFIT and not fitting.may_fit(measure):
            continue
        kept = fitting.room(measure)
        if kept == total:
            return list(fitting.at(measure))
    if kept < (total if whole else min(contract.REFIT_ROWS, total)):
        kept = fitting.room(SHORT)
        if kept == total:
            return list(fitting.at(SHORT))
    if whole or total == 1:
        shown = _less_of_each(fitting)
        if shown is not None:
            return shown
    return max(kept, 1)


def _less_of_each(fitting: Fitting) -> list[Block] | None:
    """Every row, cut as far as it must be; a single one always, several where that is enough."""
    total = len(fitting.rows)
    for measure in (SHORTEST, LEAST):
        if fitting.room(measure) == total:
            return list(fitting.at(measure))

    def of(members: int) -> Measure:
        return LEAST._replace(members=members)

    kept = largest(fitting.most_members(), lambda members: fitting.room(of(members)) == total)
    if total > 1 and fitting.room(of(kept)) < total:
        return None
    return list(fitting.at(of(kept)))
