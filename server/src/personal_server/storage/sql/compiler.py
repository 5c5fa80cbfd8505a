"""Plans become statements over the tables of one source.

Rule: what is visible, what matches and how lines are walked is put into SQL here only.  Names of
tables and columns come from layouts, never from callers; every value is a parameter.  Statements of
several sources are merged above, by (value, key, connection).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import orjson
from msgspec.structs import replace

from pdpp_kernel.criteria import Condition, Order, Term, WordQuery
from pdpp_kernel.operators import RANGES, Operator
from pdpp_kernel.values import (
    COMPARED_CODE_POINTS,
    DAY_NANOSECONDS,
    Comparable,
    ValueKind,
    order_key,
)
from personal_server.domain.search_words import tokens
from personal_server.enforcement.rows import Position
from personal_server.enforcement.scopes import Scope
from personal_server.storage.folding import fold
from personal_server.storage.row_rules import TIME_KINDS
from personal_server.storage.sql.dialect import Dialect, Value
from personal_server.storage.sql.layout import Column, Layout, held_digest
from personal_server.storage.sql.record_ids import FIRST_IN_TIME, WIDEST_PROBE, place_in_time
from personal_server.storage.tables import ColumnKind

# So many words of a text tell it from almost all others.
MOST_WORDS = 16
MAX_ID = 2**63 - 1
# The index of the keys, beside those that bear the names of columns.
KEYS = "k"
_SIGNS = {
    Operator.EQ: "=",
    Operator.GTE: ">=",
    Operator.GT: ">",
    Operator.LTE: "<=",
    Operator.LT: "<",
}


class Statement(msgspec.Struct, frozen=True):
    """SQL with its parameters."""

    sql: str
    params: tuple[Value, ...]


# Why plans are steered.  A grant shows mails of May; a read asks for mails from Ada.  Both columns
# have an index.  If the database walked Ada's index it would meet her hidden mails of April, too,
# and how long the read takes would tell how many there are.  So the condition that hides lines
# chooses the index, and what is asked only filters what that index leads to:
#
#   in:   visible  r.c3 >= May 1 AND r.c3 < June 1      (the grant's time)
#         asked    r.c1 = 'ada@example.org'             (the caller's filter)
#   out:  FROM r7 r INDEXED BY r7_c3 WHERE r.c3 >= ? AND r.c3 < ? AND r.c1 = ?
#
# Three means, which each database spells in its own way (`Dialect`):
#   `Where.index`     the index by which lines are read, named in the statement (`walking`);
#   `unsteering`      a comparison written so that no index serves it (`+r.c1 = ?` on SQLite);
#   `behind_index`    the same for PostgreSQL, whose planner would pick the rarer value's index
#                     (`(r.c1 = ?) IS TRUE`).
# `yielding` takes the index away from all comparisons of one column: where a caller asks for
# `since June 3` of the very column that the grant bounds, only the grant's bounds lead.


class Where(msgspec.Struct, frozen=True):
    """Conditions that hold together; an impossible one makes the whole empty.

    `index`: lines are read by their keys (`KEYS`) or by the index of that column, whatever index
    another condition has: that one would lead over lines that are left out here, and how long it
    takes would tell of them.
    """

    parts: tuple[str, ...] = ()
    params: tuple[Value, ...] = ()
    index: str | None = None

    def __and__(self, other: Where) -> Where:
        index = KEYS if KEYS in (self.index, other.index) else self.index or other.index
        return Where(self.parts + other.parts, self.params + other.params, index)

    def yielding(self, dialect: Dialect, name: str, signs: str = "<>") -> Where:
        """The same, with bounds of a column not competing with further ones for its index."""
        starts = tuple(f"{name} {sign}" for sign in signs)
        parts = [dialect.unsteering(p) if p.startswith(starts) else p for p in self.parts]
        return replace(self, parts=tuple(parts))

    @property
    def free(self) -> Where:
        """The same where what else is asked leads to few lines: only keys still say how."""
        return self if self.index == KEYS else replace(self, index=None)

    @property
    def sql(self) -> str:
        """The clause, empty without conditions."""
        return f" WHERE {' AND '.join(self.parts)}" if self.parts else ""


NOTHING = Where(("1 = 0",))


def with_key(key: str) -> Where:
    """The line of a record, by its key."""
    return Where(("r.k = ?",), (key,), KEYS)


class Compiler(msgspec.Struct, frozen=True):
    """Statements over one source: tables `r<number>`, `h<number>`, `w<number>`.

    `is_indexed`: the word index knows every record.
    """

    layout: Layout
    number: int
    dialect: Dialect
    is_indexed: bool = True

    def lines(self, walking: str = "") -> str:
        """All lines, with what a rebuild will give a column looked up in the text meanwhile."""
        table = f"r{self.number} r{walking}"
        looked_up = [f"{self._at(column)} AS {column.name}" for column in self.layout.rebuilding]
        return f"(SELECT r.*, {', '.join(looked_up)} FROM {table}) r" if looked_up else table  # noqa: S608

    def _at(self, column: Column) -> str:
        """What a column will hold, from the JSON text."""
        text = self._text()
        if column.kind is ValueKind.STRING:
            string = self.dialect.string_at(text, column.field)
            return f"substr({string}, 1, {COMPARED_CODE_POINTS})"
        return self.dialect.comparable_at(text, column.field, column.kind)

    def _text(self) -> str:
        """The JSON text of a line; one that is damaged is null."""
        return (
            f"(SELECT data FROM h{self.number} h WHERE h.id = r.id"  # noqa: S608
            f" AND {self.dialect.is_json('data')})"
        )

    # Which lines ------------------------------------------------------------------------------
    def visible(self, scope: Scope) -> Where:
        """Source: docs/contract/resource-server.md 4.3."""
        met = Where()
        if scope.resources is not None:
            met &= self.with_keys(sorted(scope.resources))
        for condition in scope.only:
            met &= self._only(condition)
        if scope.window is None:
            return met
        column = self.layout.column(scope.window.field)
        declared = scope.stream.properties.get(scope.window.field)
        if column is None or declared is None or column.kind not in TIME_KINDS:
            return NOTHING
        for sign, bound in ((">=", scope.window.since_ns), ("<", scope.window.until_ns)):
            if bound is not None:
                met &= Where((f"r.{column.name} {sign} ?",), (self._instant(bound, column),))
        return met

    def _only(self, condition: Condition) -> Where:
        """A limit of a grant, read by its own index: there what is left out stands apart."""
        column = self._compared_column(condition)
        is_walked = column is not None and column.indexed and self._lies_together(condition)
        index = column.name if column is not None and is_walked else None
        return replace(self._condition(condition), index=index)

    def matching(self, scope: Scope, conditions: Iterable[Condition]) -> Where:
        """Visible lines that satisfy all conditions."""
        visible, where = self.visible(scope), self.asked(scope, conditions)
        if visible.index not in (None, KEYS):
            # asked of the limit's own column, a value would lead through its index past the limit
            where = where.yielding(self.dialect, f"r.{visible.index}", "=<>I")
        if visible.index is not None:
            where = replace(where, parts=tuple(map(self.dialect.behind_index, where.parts)))
        return visible & where

    def asked(self, scope: Scope, conditions: Iterable[Condition]) -> Where:
        """Lines that satisfy all conditions, seen or not."""
        met = Where()
        for condition in conditions:
            met &= self._worded(condition, scope) & self._condition(condition)
        return met

    # A stretch of the word index.  Ids of lines stand in the order of time (`place_in_time`: the
    # instant in microseconds, shifted by `SLOT_BITS`; where several lines have one instant, later
    # ones stand a little behind it, at most `WIDEST_PROBE` ids).  So a grant's time is a stretch of
    # ids, and a walk of the word index can begin at its first visible line and end at its last.
    #
    #   ids:     … 40 41 │ 42 43 44 ……………… 90 91 │ 92 93 …      42: first visible, 91: last visible
    #   hidden:  ──────── │                       │ ─────      never met by the walk
    #   unsure:             42 … │ sure │ … 91                  here a hidden line may stand, since
    #                                                           one visible was pushed behind it
    # `stretch` gives the outer bounds, `sure` the inner ones (all between is visible), and
    # `seen_stretch` both: what is not between the inner bounds is looked up line by line.

    def stretch(self, scope: Scope, name: str = "f.rowid", begins: str | None = None) -> Where:
        """Of the lines `f` of the word index those from the first visible one to the last.

        What has a length ends with `name`, and `begins` at another.

        What lies outside is never met by a walk of the word index.  Inside, lines that are not
        visible stand only where many of one instant pushed a visible one behind the bound.
        """
        window = scope.window
        if window is None or window.field != self.layout.placed:
            return Where()
        visible = self.visible(scope.unpicked)
        unsteered = Where(tuple(self.dialect.unsteering(p) for p in visible.parts), visible.params)
        first = FIRST_IN_TIME if window.since_ns is None else self._place(window.since_ns)
        bound_part = self._outermost(name, ">=", first, unsteered)
        if window.until_ns is not None:
            last = min(self._place(window.until_ns) + WIDEST_PROBE, MAX_ID)
            bound_part &= self._outermost(begins or name, "<=", last, unsteered)
        return bound_part

    def seen_stretch(self, scope: Scope, name: str) -> Where | None:
        """Of ids of this source those of visible records, by their stretch alone but at its ends.

        `None` where what is visible is no stretch of time.
        """
        if scope.window is None or not self.is_stretch(scope):
            return None
        visible = self.visible(scope)
        if visible == NOTHING:
            return visible
        stretch = self.stretch(scope, name)
        surely = Where((f"{name} > ?", f"{name} < ?"), self.sure(scope))
        first_row = Where((f"r.id = {name}",)) & visible
        # as a value it is looked up for each id, never for all that may be hidden
        looked_up = f"(SELECT 1 FROM {self.lines()}{first_row.sql}) = 1"  # noqa: S608
        either = f"({' AND '.join(surely.parts)} OR {looked_up})"
        return stretch & Where((either,), surely.params + first_row.params)

    def is_stretch(self, scope: Scope) -> bool:
        """Whether what is visible is a stretch of time, or everything."""
        window = scope.window
        return not scope.is_picked and (window is None or window.field == self.layout.placed)

    def sure(self, scope: Scope) -> tuple[int, int]:
        """Between which ids everything is visible, where that is a stretch (`is_stretch`)."""
        window, first, last = scope.window, -MAX_ID, MAX_ID
        if window is not None:
            first = FIRST_IN_TIME
            if window.since_ns is not None:
                first = min(self._place(window.since_ns) + WIDEST_PROBE, MAX_ID)
            if window.until_ns is not None:
                last = self._place(window.until_ns)
        return first, last

    def _place(self, instant_ns: int) -> int:
        return place_in_time(instant_ns, 0, self.layout)

    def _outermost(self, name: str, sign: str, bound: int, visible: Where) -> Where:
        """Ids that do not lie beyond the first visible one (`>=`) or the last (`<=`)."""
        way, nothing = (" DESC", -MAX_ID) if sign == "<=" else ("", MAX_ID)
        where = Where((f"r.id {sign} ?",), (bound,)) & visible
        end = f"SELECT r.id FROM {self.lines()}{where.sql} ORDER BY r.id{way} LIMIT 1"  # noqa: S608
        return Where((f"{name} {sign} coalesce(({end}), {nothing})",), where.params)

    def bounds(self, scope: Scope, conditions: Iterable[Condition]) -> dict[Column, Where]:
        """What is asked of each indexed column, the scope's window included."""
        by_column: dict[Column, Where] = {}
        for condition in conditions:
            column = self._compared_column(condition)
            if column is None or not self._lies_together(condition):
                continue
            if column.indexed and column.field != self.layout.key:
                by_column[column] = by_column.get(column, Where()) & self._condition(condition)
        window = None if scope.window is None else self.layout.column(scope.window.field)
        visible = self.visible(scope.unpicked)
        if window is not None and window.indexed and visible != NOTHING:
            by_column[window] = by_column.get(window, Where()) & visible
        return by_column

    def probe(self, column: Column, where: Where, limit: int) -> Statement:
        """How many lines an index narrows to, counted up to a limit."""
        lines = f"SELECT 1 FROM {self._lines(where, column)}{where.sql} LIMIT ?"  # noqa: S608
        return Statement(f"SELECT count(*) FROM ({lines}) AS met", (*where.params, limit))  # noqa: S608

    def keeps_order(self, column: Column, order: Order) -> bool:
        """Whether lines with one value of a column lie in that order in its index."""
        columns = self.layout.indexes.get(column.name, ())
        sorted_by = self.layout.column(order.field, order.kind)
        names = (sorted_by.name, "k") if sorted_by else ("k",)
        return columns[1 : 1 + len(names)] == names

    def _lines(self, where: Where, driver: Column | None = None) -> str:
        """The lines, read by their keys or by the index of a column where that is settled."""
        index = where.index or (driver and driver.name)
        walking = self.dialect.walking(f"r{self.number}_{index}") if index else ""
        return self.lines(walking)

    def equal(self, column: Column, value: Comparable) -> Where:
        """Lines with that value in a column."""
        return self._condition(Condition(column.field, column.kind, Operator.EQ, value))

    def held_digests(self, condition: Condition) -> frozenset[str]:
        """What stands in `was_held` for the values of a condition."""
        values = (fold(str(v)) if condition.caseless else order_key(v) for v in condition.values)
        return frozenset(held_digest(self._bound(value)) for value in values)

    def holding(self, field: str, value: str) -> Where:
        """Lines whose field is that string, whoever may see them."""
        return self._condition(Condition(field, ValueKind.STRING, Operator.EQ, value))

    def _condition(self, condition: Condition) -> Where:
        if condition.any_of:
            return self._any_of(condition)
        match condition.operator:
            case Operator.IN:
                return self._one_of(condition)
            case Operator.NE:
                return self._other_than(condition)
            case Operator.EXISTS:
                return self._existing(condition)
            case Operator.CONTAINS | Operator.STARTS_WITH:
                return self._with_part(condition)
            case _ if condition.caseless:
                return self._equal_in_any_case(condition)
            case _:
                return self._compared(condition)

    def _any_of(self, condition: Condition) -> Where:
        """One of several, by no index: it would lead over lines that others leave out."""
        each = [[self._condition(one) for one in choice] for choice in condition.any_of]
        spelled = [
            " AND ".join(self.dialect.unsteering(part) for one in choice for part in one.parts)
            for choice in each
        ]
        params = tuple(param for choice in each for one in choice for param in one.params)
        return Where((self.dialect.behind_index(f"({' OR '.join(spelled)})"),), params)

    def _equal_in_any_case(self, condition: Condition) -> Where:
        value = fold(str(condition.value))
        equal = self._alike(condition, value, starts=True, ends=True)
        folded = self._compared_column(condition)
        if folded is not None:
            folded_value = Where((f"r.{folded.name} = ?",), (value[:COMPARED_CODE_POINTS],))
            return folded_value & equal if self._is_cut(value) else folded_value
        column = self.layout.column(condition.field, condition.kind)
        if column is None or condition.field == self.layout.key:
            return equal
        # folding keeps the length, which the database compares much sooner
        length = min(len(value), COMPARED_CODE_POINTS)
        return Where((f"length(r.{column.name}) = ?",), (length,)) & equal

    def _one_of(self, condition: Condition) -> Where:
        ways = [
            self._condition(replace(condition, operator=Operator.EQ, value=value, further=()))
            for value in condition.values
        ]
        params = tuple(param for way in ways for param in way.params)
        column = self._compared_column(condition)
        if column is not None and self._lies_together(condition):
            # in this form, and no other, an index may be named for it
            return Where((f"r.{column.name} IN ({', '.join('?' for _ in ways)})",), params)
        return Where((f"({' OR '.join(' AND '.join(way.parts) for way in ways)})",), params)

    def _other_than(self, condition: Condition) -> Where:
        equal = self._condition(replace(condition, operator=Operator.EQ))
        present = self._existing(replace(condition, operator=Operator.EXISTS, value=True))
        return present & Where((f"NOT ({' AND '.join(equal.parts)})",), equal.params)

    def _existing(self, condition: Condition) -> Where:
        column = self.layout.column(condition.field, condition.kind)
        if condition.field == self.layout.key:
            key_column = "r.k"
        elif column is not None:
            key_column = f"r.{column.name}"
        else:
            key_column = self._in_text(condition)
        return Where((f"{key_column} IS {'NOT ' if condition.value else ''}NULL",))

    def _with_part(self, condition: Condition) -> Where:
        starts = condition.operator is Operator.STARTS_WITH
        return self._alike(condition, str(condition.value), starts=starts)

    def _alike(
        self, condition: Condition, sought: str, *, starts: bool = False, ends: bool = False
    ) -> Where:
        """Whether the string of a condition has a part, both folded."""
        sql, param = self.dialect.alike(self._string(condition), sought, starts=starts, ends=ends)
        return Where((sql,), (param,))

    def _string(self, condition: Condition) -> str:
        """The whole string that a condition is about."""
        column = self.layout.column(condition.field, condition.kind)
        if condition.field == self.layout.key:
            return "r.k"
        if column is not None:
            return self.whole_string(column)
        return self.dialect.string_at(self._text(), condition.field)

    def _compared_column(self, condition: Condition) -> Column | None:
        """The column that holds what a condition compares: as it is, or folded."""
        if condition.caseless:
            return self.layout.folded_column(condition.field)
        return self.layout.column(condition.field, condition.kind)

    def _lies_together(self, condition: Condition) -> bool:
        """Whether the lines of a condition lie together in the index of that column."""
        if condition.operator in RANGES:
            return True
        is_equality = condition.operator in (Operator.EQ, Operator.IN)
        is_cut = any(self._is_cut(value) for value in condition.values)
        return is_equality and (condition.operator is Operator.EQ or not is_cut)

    def _compared(self, condition: Condition) -> Where:
        if condition.field == self.layout.key and condition.operator is Operator.EQ:
            return Where(("r.k = ?",), (self._bound(condition.value),))
        column = self.layout.column(condition.field, condition.kind)
        if column is None:
            return self._condition_on_text(condition)
        sign, value = _SIGNS[condition.operator], condition.value
        comparison = Where((f"r.{column.name} {sign} ?",), (self._bound(order_key(value)),))
        is_cut = condition.operator is Operator.EQ and self._is_cut(value)
        return comparison & self._condition_on_text(condition) if is_cut else comparison

    def _is_cut(self, value: Comparable) -> bool:
        """Whether a column holds only the beginning of what is asked for."""
        return isinstance(value, str) and len(value) >= COMPARED_CODE_POINTS

    def _reads_text(self, condition: Condition) -> bool:
        """Whether a condition that a word index could narrow looks at whole texts."""
        if condition.operator is not Operator.EQ or condition.caseless:
            return False
        if condition.field == self.layout.key:
            return False
        column = self.layout.column(condition.field, condition.kind)
        return column is None or self._is_cut(condition.value)

    def _condition_on_text(self, condition: Condition) -> Where:
        """For fields without a column: the JSON text is looked at."""
        text = self._in_text(condition)
        return Where((f"{text} {_SIGNS[condition.operator]} ?",), (self._bound(condition.value),))

    def _in_text(self, condition: Condition) -> str:
        if condition.operator in RANGES:
            return self.dialect.comparable_at(self._text(), condition.field, condition.kind)
        return self.in_text(condition.field, condition.kind)

    def _worded(self, condition: Condition, scope: Scope) -> Where:
        """An equal text has the same words: the index narrows before texts are looked at.

        Not where records are hidden: the index knows them too.
        """
        value, lexical = condition.value, self.layout.lexical
        if condition.field not in lexical or not self._reads_text(condition):
            return Where()
        words = tokens(value)[:MOST_WORDS] if isinstance(value, str) else []
        is_whole = not scope.is_picked and scope.window is None
        if not words or not is_whole or not self.is_indexed:
            return Where()
        phrase = WordQuery((Term(tuple(words)),))
        worded = self.words(phrase, {condition.field: lexical.index(condition.field)})
        index = f"w{self.number} f"
        return Where((f"r.id IN (SELECT f.rowid FROM {index}{worded.sql})",), worded.params)  # noqa: S608

    def words(
        self,
        words: WordQuery,
        indexes: Mapping[str, int],
        among: Mapping[str, int] | None = None,
        scope: Scope | None = None,
    ) -> Where:
        """Lines `f` of the word index that hold words (`Dialect.matches`), in what is visible."""
        visible = Where() if scope is None else self.seen_blocks(scope)
        word_arguments = (f"w{self.number}", words, indexes, among, (visible.parts, visible.params))
        return Where(*self.dialect.matches(*word_arguments))

    def seen_blocks(self, scope: Scope) -> Where:
        """The stretches of lines, from `p.first` to `p.last`, in which visible ones stand."""
        return self.stretch(scope, "p.last", "p.first")

    def with_words(self, scope: Scope, words: WordQuery, indexes: Mapping[str, int]) -> Where:
        """Lines that the word index finds by what its fields, at these places, hold.

        It is walked where visible records stand, and nowhere else.
        """
        index = f"w{self.number}"
        met = self.words(words, indexes, scope=scope) & self.stretch(scope)
        return Where((f"r.id IN (SELECT f.rowid FROM {index} f{met.sql})",), met.params)  # noqa: S608

    def in_text(self, field: str, kind: ValueKind | None) -> str:
        """The comparable of a field, from the JSON text; without a kind the text of its list."""
        if kind is ValueKind.STRING:
            return self.dialect.string_at(self._text(), field)
        return self.dialect.comparable_at(self._text(), field, kind)

    def whole_string(self, column: Column) -> str:
        """The string of a column; long ones, which the column cuts, from the JSON text."""
        name = f"r.{column.name}"
        text = self._text()
        whole = self.dialect.string_at(text, column.field)
        return f"CASE WHEN length({name}) < {COMPARED_CODE_POINTS} THEN {name} ELSE {whole} END"

    # Pages ------------------------------------------------------------------------------------
    def walk(
        self,
        where: Where,
        order: Order,
        after: Position | None,
        place_names: tuple[str, str],
        limit: int,
        driver: Column | None = None,
    ) -> list[Statement]:
        """Lines (value, key, id) after a position: with a sort value first, then without.

        `place` is the connection and the stream; `driver` is the column whose index is walked,
        where that is known to be best.
        """
        walks = self._walks(where, order, after, place_names, driver)
        return [Statement(f"{each.sql} LIMIT ?", (*each.params, limit)) for each in walks]

    def _walks(
        self,
        where: Where,
        order: Order,
        after: Position | None,
        place_names: tuple[str, str],
        driver: Column | None = None,
        more: str = "",
    ) -> list[Statement]:
        """The same to their end; `more` are further columns, of the text too."""
        lines = self._lines(where, driver)
        if more:
            lines += f" LEFT JOIN h{self.number} h ON h.id = r.id"
        columns = f"r.k, r.id{more}"
        column = self.layout.column(order.field, order.kind)
        if column is None:
            # no such value on any line: all are null values
            follows = _keys_after(order, after, place_names)
            return [_walk(lines, f"NULL, {columns}", where & follows, "r.k", order)]
        value = f"r.{column.name}"
        parts: list[Statement] = []
        if after is None or after.value is not None:
            begun = "<" if order.descending else ">"
            bounded = where if after is None else where.yielding(self.dialect, value, begun)
            present = bounded & self._follows(value, order, after, place_names)
            by = f"{value}{_way(order)}, r.k"
            parts.append(_walk(lines, f"{value}, {columns}", present, by, order))
        absent = where & Where((f"{value} IS NULL",))
        if after is not None and after.value is None:
            absent &= _keys_after(order, after, place_names)
        parts.append(_walk(lines, f"NULL, {columns}", absent, "r.k", order))
        return parts

    def page(
        self,
        where: Where,
        order: Order,
        after: Position | None,
        place_names: tuple[str, str],
        limit: int,
        *,
        whole: bool,
    ) -> Statement:
        """The lines of `walk` in one statement; `whole` ones with the rest of `rows`."""
        more = f", r.cs, r.ce, r.fc, h.sum, {self.dialect.bytes_of('h.data')}" if whole else ""
        walks = self._walks(where, order, after, place_names, more=more)
        # a limit that is not in the text is planned for a tenth of all lines, or anew each time
        listed = " UNION ALL ".join(f"({each.sql} LIMIT {limit})" for each in walks)
        params = tuple(param for each in walks for param in each.params)
        return Statement(f"SELECT * FROM ({listed}) AS page LIMIT {limit}", params)  # noqa: S608

    def walk_of_words(
        self,
        where: Where,
        order: Order,
        after: Position | None,
        place_names: tuple[str, str],
        limit: int,
    ) -> Statement:
        """Lines (value, key, id) that have a sort value, by the ids of the word index `f`."""
        column = self.layout.column(order.field, order.kind)
        value = "NULL" if column is None else f"r.{column.name}"
        met = where & self._follows(value, order, after, place_names)
        lines = f"w{self.number} f {self.dialect.with_line('f.rowid', self.lines())}"
        walk = _walk(lines, f"{value}, r.k, r.id", met, "f.rowid", order)
        return Statement(f"{walk.sql} LIMIT ?", (*walk.params, limit))

    def _follows(
        self, value: str, order: Order, after: Position | None, place_names: tuple[str, str]
    ) -> Where:
        if after is None:
            return Where((f"{value} IS NOT NULL",))
        sign = _beyond(order, after, place_names)
        return Where((f"({value}, r.k) {sign} (?, ?)",), (self._bound(after.value), after.key))

    # Whole records ----------------------------------------------------------------------------
    def rows(self, where: Where, tail: str = "") -> Statement:
        """Whole records: id, key, creation, changes, checksum, the text as bytes, if there."""
        columns = f"r.id, r.k, r.cs, r.ce, r.fc, h.sum, {self.dialect.bytes_of('h.data')}"
        lines = f"{self._lines(where)} LEFT JOIN h{self.number} h ON h.id = r.id"
        return Statement(f"SELECT {columns} FROM {lines}{where.sql}{tail}", where.params)  # noqa: S608

    def with_keys(self, keys: Iterable[str]) -> Where:
        """The lines of records, by their keys."""
        listed = orjson.dumps(list(keys)).decode()
        return Where((self.dialect.one_of_keys("r.k", "?"),), (listed,), KEYS)

    def with_ids(self, ids: Sequence[int]) -> Where:
        """The lines with these ids."""
        one_of = self.dialect.values("?", ColumnKind.INTEGER)
        return Where((f"r.id IN {one_of}",), (orjson.dumps(list(ids)).decode(),))

    def select(self, columns_sql: str, where: Where, tail: str = "") -> Statement:
        """A statement for figures over the lines that meet the conditions."""
        lines = self._lines(where)
        return Statement(f"SELECT {columns_sql} FROM {lines}{where.sql}{tail}", where.params)  # noqa: S608

    def extreme(self, column: Column, where: Where, *, highest: bool) -> Statement:
        """The lowest or highest comparable of a column; no line where there is none."""
        name = f"r.{column.name}"
        present = where & Where((f"{name} IS NOT NULL",))
        return self.select(name, present, f" ORDER BY {name}{' DESC' if highest else ''} LIMIT 1")

    def _instant(self, instant_ns: int, column: Column) -> Value:
        """An instant as the column compares: days begin at 00:00:00Z."""
        is_day = column.kind is ValueKind.DATE
        return -(-instant_ns // DAY_NANOSECONDS) if is_day else self._bound(instant_ns)

    def _bound(self, value: Comparable | None) -> Value:
        return self.dialect.bound(value)


def _walk(lines: str, columns: str, where: Where, by: str, order: Order) -> Statement:
    sql = f"SELECT {columns} FROM {lines}{where.sql} ORDER BY {by}{_way(order)}"  # noqa: S608
    return Statement(sql, where.params)


def _keys_after(order: Order, after: Position | None, place_names: tuple[str, str]) -> Where:
    if after is None:
        return Where()
    return Where((f"r.k {_beyond(order, after, place_names)} ?",), (after.key,))


def _beyond(order: Order, after: Position, place_names: tuple[str, str]) -> str:
    """How a line of this place compares to a position: connection and stream break ties."""
    if order.descending:
        return "<=" if place_names < after.place else "<"
    return ">=" if place_names > after.place else ">"


def _way(order: Order) -> str:
    return " DESC" if order.descending else ""
