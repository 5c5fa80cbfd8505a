"""Columns learnt from their values: the narrowest type that holds all of them, and their roles."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import tzinfo
from typing import cast

import msgspec
from msgspec.structs import replace

from pdpp_kernel.source_item import Json
from pdpp_sources.common.epochs import EPOCHS, UNIX, WEBKIT, epoch_of, is_time_name
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.text import one_line, printable, printable_within
from pdpp_sources.reader_messages import KnownColumn
from pdpp_sources.tables.column_amounts import (
    AMOUNT_FORMS,
    POINTS,
    amount_forms,
    amount_value,
    currency_of,
    says_point,
)
from pdpp_sources.tables.column_codes import (
    is_checked,
    is_code,
    is_code_name,
    shown_by,
    unguarded,
)
from pdpp_sources.tables.column_currencies import (
    MOST_CURRENCY_CHARS,
    currencies_of,
    names_currency,
)
from pdpp_sources.tables.column_days import (
    DAY_FIRST,
    DAY_FORMS,
    MONTH_FIRST,
    day_forms,
    day_value,
)
from pdpp_sources.tables.column_keys import (
    ANY_FORM,
    KEY_NAMES,
    MOST_KEYS,
    is_key_name,
    key_forms,
    may_be_key,
)
from pdpp_sources.tables.column_names import field_names

MOST_COLUMNS = 200
# Each spelling with its type. A number with a comma, or a day with slashes, means something only
# beside the others of its column: each cell names every spelling that it fits, and of those that
# all cells share the first counts. That digits are a `code` has to be shown besides.
SPELLINGS = {
    "boolean": "boolean",
    **dict.fromkeys(EPOCHS, "date-time"),
    "yyyymmdd": "date",
    "yyyymmddhhmmss": "date-time",
    "code": "string",
    "integer": "integer",
    "number": "number",
    **dict.fromkeys(AMOUNT_FORMS, "number"),
    **DAY_FORMS,
    "string": "string",
    "strings": "strings",
    "json": "json",
}
# What a column is called to its owner, by its spelling or else its type.
_WORDS = {
    "code": "code",
    "string": "text",
    "integer": "number",
    "number": "number",
    "date": "day",
    "date-time": "instant",
    "boolean": "yes or no",
    "strings": "list",
    "json": "nested",
}
# What has so many blanks is a sentence; a column is prose if one cell of so many is one.
_BLANKS_OF_A_SENTENCE, _PART_OF_SENTENCES = 3, 4
# What the owner may say that a column holds, and the spellings that fit it, the likeliest first.
KINDS = {
    "text": ("string",),
    "code": ("code", "string"),
    "number": tuple(s for s, kind in SPELLINGS.items() if kind in ("integer", "number")),
    "day": tuple(s for s, kind in SPELLINGS.items() if kind == "date"),
    "month-first": ("month/day", "month-day", "month/day time", "month-day time"),
    "instant": tuple(s for s, kind in SPELLINGS.items() if kind == "date-time"),
}
_PATTERNS = {
    "integer": re.compile(r"-?(0|[1-9]\d{0,17})"),
    "number": re.compile(r"-?(?:\d{1,15}(?:\.\d{0,15}(?:[eE][-+]?\d{1,3})?)?|\.\d{1,15})"),
    "boolean": re.compile(r"true|false", re.IGNORECASE),
}
_INSTANTS_OF_TEXT = {epoch.name for epoch in (*UNIX.values(), WEBKIT)}
_NO_INSTANTS = set(SPELLINGS) - set(EPOCHS)
_TEXTS = frozenset({"string", "json"})
_NUMBERS = frozenset({"integer", "number"})
# How programs write that there is no value, where a number or a day should be.
_NO_VALUES = frozenset(
    {"", '=""', "nan", "n/a", "na", "#n/a", "null", "none", "nil", "-", "--", "–", "—", "?", "\\n"}
    | {"#value!", "#ref!", "#div/0!", "#name?", "0000-00-00", "0000-00-00 00:00:00"}
)
_UNDECIDED = tuple(
    (f"day{sign}month{time}", f"month{sign}day{time}") for sign in "/-" for time in ("", " time")
)
_DISTINCT_KEPT = 1000
_GROUPS = 200
_MOST_EXAMPLES = 3
_EXAMPLE_CHARS = 40
_CHECKED_CELLS = 5  # as many digits as these check themselves by chance once in 100,000 columns
_TITLE_NAMES = ("title", "name", "subject", "headline", "summary", "label")
# Columns of a chat as a table: rows are what a speaker said in a conversation.
_CONVERSATION_NAMES = ("conversation", "chat", "dialogue", "dialog", "channel", "thread", "room")
_SPEAKER_NAMES = ("speaker", "sender", "author", "from", "user", "username", "absender", "von")
_SIGNED = re.compile(r"-\d")
_PADDED = re.compile(r"\s*0\d+\.\d+\s*")  # of a classification: 007.1 is another than 7.1


class TableColumn(msgspec.Struct, frozen=True):
    """One column: its name in the file, its name as a field, its type, its roles.

    Shapes: `why` is a word of why it is read so where that is no matter of course, `examples` up to
        three of its cells; `currency` is the one of all its cells, `currency_field` the field that
        says it of each row; `has_whole_keys` where its cells, as keys, are whole numbers;
        `is_prose` where they are sentences, to be found by meaning.
    """

    source_name: str
    name: str
    spelling: str
    is_key: bool = False
    is_time: bool = False
    is_title: bool = False
    is_grouped: bool = False
    is_conversation: bool = False
    is_speaker: bool = False
    is_currency: bool = False
    why: str = ""
    examples: tuple[str, ...] = ()
    currency: str | None = None
    currency_field: str | None = None
    has_whole_keys: bool = False
    is_prose: bool = False

    @property
    def kind(self) -> str:
        """The type of its values."""
        return SPELLINGS[self.spelling]

    @property
    def word(self) -> str:
        """The type as its owner calls it."""
        return _WORDS[self.spelling if self.spelling == "code" else self.kind]


class Survey:
    """Values of a table, column by column."""

    def __init__(
        self, instants: AbstractSet[str] = frozenset(), *, has_semicolons: bool = False
    ) -> None:
        """`instants` are columns whose numbers are instants, since the owner says so."""
        self._has_semicolons = has_semicolons
        self._columns: dict[str, _Statistics] = {}
        self._instants = instants
        self._rows = 0
        self.has_more_columns = False

    def add(self, values: dict[str, Json]) -> None:
        """Learn from one row."""
        self._rows += 1
        for name, value in values.items():
            if name in self._columns or len(self._columns) < MOST_COLUMNS:
                if name not in self._columns:
                    self._columns[name] = _Statistics.of(name, is_time=name in self._instants)
                self._columns[name].add(value)
            else:
                self.has_more_columns = True

    def columns(
        self,
        known_columns: Mapping[str, KnownColumn] | None = None,
        kinds: Mapping[str, str] | None = None,
    ) -> tuple[TableColumn, ...]:
        """The columns in their order, with one key, one time and one title at most.

        In: rows `{"Datum": "24.12.2026", "PLZ": "01067", "Betrag": "1.234,50"}` and the like. Out:
        `Datum` a day, and the time; `PLZ` a code, since a cell has a leading zero; `Betrag` a
        number with a comma.
        Shapes: `kinds` is what the owner says of columns, a word of `KINDS` for each name.
        Raises: BadRecord (`usage`), if a column is not of the kind that the owner says.
        """
        fields = field_names(
            self._columns, {name: column.field for name, column in (known_columns or {}).items()}
        )
        judged = self._judged(known_columns or {}, kinds or {}, fields)
        key_names = [n for n in self._columns if is_key_name(n) and self._is_unique(n)]
        key = next((n for n in key_names if n.lower() in KEY_NAMES), next(iter(key_names), None))
        timed = [n for n, spelling in judged.items() if _kind(spelling[0]) in ("date-time", "date")]
        whole = [n for n in timed if self._columns[n].filled == self._rows]
        texts = [n for n, judgement in judged.items() if judgement[0] == "string" and n != key]
        time = next(iter(whole or timed), None)
        grouped = [n for n in texts if self._columns[n].is_grouped("string")]
        chat = _chat_columns(grouped) if time in whole else ()
        usual = None if chat else next(iter(texts), None)  # what is said in a chat is no title
        title = next((n for n in texts if n.lower() in _TITLE_NAMES), usual)
        in_currency = self._in_currency(judged, key)
        return tuple(
            TableColumn(
                name,
                fields[name],
                spelling,
                is_key=name == key,
                is_time=name == time,
                is_title=name == title,
                is_grouped=self._columns[name].is_grouped(_kind(spelling)) and name != key,
                is_conversation=name in chat[:1],
                is_speaker=name in chat[1:],
                is_currency=name in in_currency.values(),
                why=reason,
                examples=tuple(self._columns[name].examples),
                currency=next(iter(self._columns[name].currencies), None)
                if _kind(spelling) == "number"
                else None,
                currency_field=fields.get(in_currency.get(name, "")),
                has_whole_keys="integer" in self._columns[name].keys,
                is_prose=spelling == "string" and self._columns[name].is_prose(),
            )
            for name, (spelling, reason) in judged.items()
        )

    def _judged(
        self,
        known_columns: Mapping[str, KnownColumn],
        kinds: Mapping[str, str],
        fields: Mapping[str, str],
    ) -> dict[str, tuple[str, str]]:
        """The spelling of each column, and why where that is no matter of course."""
        hints = _Hints(self._columns.values(), has_semicolons=self._has_semicolons)
        judged: dict[str, tuple[str, str]] = {}
        for name, column in self._columns.items():
            kind = kinds.get(name) or kinds.get(fields[name])
            before = known_columns[name].spelling if name in known_columns else None
            judged[name] = column.as_said(kind, hints) if kind else column.judged(before, hints)
        return judged

    def _in_currency(
        self, judged: Mapping[str, tuple[str, str]], key: str | None
    ) -> dict[str, str]:
        """Columns of amounts, each with the column that says in which currency it is."""
        numbers = [n for n, (spelling, _) in judged.items() if _kind(spelling) in _NUMBERS]
        currencies = [
            name
            for name, (spelling, _) in judged.items()
            if spelling == "string"
            and 0 < self._columns[name].longest <= MOST_CURRENCY_CHARS
            and names_currency(name)
        ]
        return currencies_of(currencies, [name for name in numbers if name != key])

    def _is_unique(self, name: str) -> bool:
        column = self._columns[name]
        usable = may_be_key(column.keys) and not column.shared <= {"strings", "json"}
        return usable and not column.repeated and column.filled == self._rows


def _chat_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Which column tells conversations apart and which says who speaks; none without both."""
    plain = {re.sub(r"[ _-]?id$", "", name.lower()): name for name in reversed(names)}
    found = [
        next((plain[name] for name in known if name in plain), None)
        for known in (_CONVERSATION_NAMES, _SPEAKER_NAMES)
    ]
    return tuple(name for name in found if name is not None) if None not in found else ()


class _Hints:
    """What columns that are sure say of those that are not: a file is written in one manner."""

    def __init__(self, columns: Iterable[_Statistics], *, has_semicolons: bool) -> None:
        self.has_semicolons = has_semicolons
        self.day_first: bool | None = None
        self.point: str | None = None
        firsts: set[bool] = set()
        points: Counter[str] = Counter()
        for column in columns:
            decided = agreed(column.values - {"code"})
            if decided in DAY_FIRST | MONTH_FIRST:
                firsts.add(decided in DAY_FIRST)
            if SPELLINGS[decided] == "number" and len(column.points) == 1:
                points.update(column.points)
        if len(firsts) == 1:
            self.day_first = firsts.pop()
        if len(points) == 1:
            self.point = next(iter(points))


class _Statistics(msgspec.Struct):
    """What the values of a column have in common so far.

    Shapes: `shared` are the spellings that all cells fit, `values` those that all fit but cells
        that say that there is no value; `keys` the same as keys are judged.
    """

    name: str
    most_distinct: int
    shared: set[str]
    values: set[str]
    keys: set[str]
    valued: int = 0
    sentences: int = 0
    distinct: set[int] = msgspec.field(default_factory=set[int])
    filled: int = 0
    repeated: bool = False
    longest: int = 0
    examples: list[str] = msgspec.field(default_factory=list[str])
    shown: str = ""  # why digits are a code, by the first cell that shows it
    is_signed: bool = False
    is_padded: bool = False
    checked: int = 0
    currencies: set[str] = msgspec.field(default_factory=set[str])
    points: set[str] = msgspec.field(default_factory=set[str])

    @classmethod
    def of(cls, name: str, *, is_time: bool) -> _Statistics:
        """A column of that name, of which nothing is known yet."""
        is_key = is_key_name(name)
        is_time = is_time or is_time_name(re.sub(r"\W+", "_", name).strip("_"))
        spellings = set(SPELLINGS) if is_time else _NO_INSTANTS
        keys = set(ANY_FORM) if is_key else {"number"}
        most = MOST_KEYS if is_key else _DISTINCT_KEPT
        return cls(name, most, set(spellings), set(spellings), keys)

    def add(self, value: Json) -> None:
        """Learn from one cell."""
        if value is None or value == "":
            return
        self.filled += 1
        spellings = spellings_of(value, self.shared | self.values)
        self.shared &= spellings
        if not says_nothing(value):
            self.valued += 1
            self.values &= spellings
            self._note(value)
        if self.keys != {"number"}:
            self.keys &= key_forms(value)
        mark = hash(str(value))
        self.repeated |= mark in self.distinct
        if self.repeated and len(self.distinct) > _DISTINCT_KEPT:
            self.distinct.clear()  # no key; and of a thousand values no group either
            self.most_distinct = 0
        if len(self.distinct) < self.most_distinct:
            self.distinct.add(mark)
        self.longest = max(self.longest, len(value) if isinstance(value, str) else 0)

    def _note(self, value: Json) -> None:
        """Keep what tells codes from numbers and one decimal sign from the other."""
        if len(self.examples) < _MOST_EXAMPLES:
            example = one_line(printable(str(value)), _EXAMPLE_CHARS)
            self.examples += [] if example in self.examples else [example]
        if not isinstance(value, str):
            return
        self.sentences += value.strip().count(" ") >= _BLANKS_OF_A_SENTENCE
        if "code" in self.values:
            self.shown = self.shown or shown_by(value) or ""
            self.checked += is_checked(unguarded(value.strip()))
        elif self.values & POINTS.keys():
            self.is_padded |= _PADDED.fullmatch(value) is not None
            self.is_signed |= _SIGNED.search(value) is not None
            if len(self.points) < 2 and (point := says_point(value)):
                self.points.add(point)
            if len(self.currencies) < 2 and (currency := currency_of(value)):
                self.currencies.add(currency)

    def is_grouped(self, kind: str) -> bool:
        """Whether few short values make out the column."""
        short = kind in ("string", "boolean") and self.longest <= 80
        few = self.most_distinct > 0 and len(self.distinct) <= _GROUPS
        return short and self.repeated and few

    def is_prose(self) -> bool:
        """Whether a good part of its values are sentences: no names, codes or choices."""
        return self.sentences * _PART_OF_SENTENCES >= self.valued > 0

    def judged(self, before: str | None, hints: _Hints) -> tuple[str, str]:
        """The spelling of the column, and why; how it was read `before` counts where it fits."""
        shared = self._usable()
        if before in shared and before != "string":
            return before, "as_before"
        if before in ("string", "code") and "code" in shared and not self.shown:
            return "code", "as_before"
        if "code" in shared and (reason := self._is_code()):
            return "code", reason
        return self._decided(shared - {"code"}, hints)

    def as_said(self, kind: str, hints: _Hints) -> tuple[str, str]:
        """The spelling of a column whose kind the owner says. Raises: BadRecord (`usage`)."""
        shared = self._usable() | {"string"}
        decided = self._decided(shared - {"code"}, hints)[0]
        allowed = [s for s in KINDS[kind] if s in shared]
        if not allowed:
            raise BadRecord("usage", f"not every cell of the column {self.name!r} is a {kind}")
        return decided if decided in allowed else allowed[0], "owner"

    def _usable(self) -> set[str]:
        """The spellings that count: of the values alone, where these say more than text."""
        if not self.filled:
            return {"string"}
        return self.values if self.valued and not self.values <= _TEXTS else self.shared

    def _is_code(self) -> str:
        """Why the digits of the column are codes; empty if they are numbers."""
        if self.shown:
            return self.shown
        if is_code_name(self.name):
            return "code_name"
        is_checked = self.checked == self.valued >= _CHECKED_CELLS
        return "check_digit" if is_checked else ""

    def _decided(self, shared: set[str], hints: _Hints) -> tuple[str, str]:
        """The first spelling that all cells share; what is ambiguous as other columns say."""
        for first, second in _UNDECIDED:
            if first in shared or second in shared:
                if not (first in shared and second in shared):
                    return agreed(shared), "day_first" if first in shared else "month_first"
                if hints.day_first is None:
                    return "string", "undecided_days"
                return (
                    (first, "day_first_as_others")
                    if hints.day_first
                    else (
                        second,
                        "month_first_as_others",
                    )
                )
        spelling = agreed(shared)
        if SPELLINGS[spelling] == "number" and self.is_padded:
            return "string", "leading_zero"
        if spelling in AMOUNT_FORMS and len(self.currencies) > 1:
            return "string", "several_currencies"
        if spelling in POINTS or spelling == "number":
            return self._by_point(spelling, shared, hints)
        if spelling == "string" and self.valued:
            return spelling, ""
        return spelling, spelling if spelling in EPOCHS or spelling.startswith("yyyy") else ""

    def _by_point(self, spelling: str, shared: set[str], hints: _Hints) -> tuple[str, str]:
        """A column of numbers whose signs may group digits or begin decimals: as others have it."""
        if self.points or "integer" in shared:
            return spelling, ""
        if hints.point is None:  # cells stand apart by semicolons where commas begin decimals
            has_commas = spelling == "1,234.5" and "1.234,5" in shared and hints.has_semicolons
            return ("1.234,5", "semicolons") if has_commas else (spelling, "")
        turned = next((f for f in POINTS if f in shared and POINTS[f] == hints.point), "")
        if not turned or POINTS.get(spelling, ".") == hints.point:
            return spelling, ""
        return turned, "point_as_others"


def _kind(spelling: str) -> str:
    return SPELLINGS[spelling]


def spellings_of(value: Json, among: AbstractSet[str] = SPELLINGS.keys()) -> set[str]:
    """Every spelling that a cell of a table fits; of those outside `among` some may be missing."""
    if isinstance(value, bool):
        return {"boolean", "json"}
    if isinstance(value, int):
        return {"integer", "number", "json"} | _instants(value) if abs(value) < 2**63 else {"json"}
    if isinstance(value, float):
        return {"number", "json"} | _instants(value) if abs(value) < 1e300 else {"json"}
    if not isinstance(value, str):
        return {"strings", "json"} if _is_strings(value) else {"json"}
    if among <= _TEXTS:
        return set(_TEXTS)
    value = value.strip()
    spellings = {name for name, pattern in _PATTERNS.items() if pattern.fullmatch(value)}
    if "code" in among and is_code(value):
        spellings.add("code")
    if "number" in spellings and not among.isdisjoint(_INSTANTS_OF_TEXT):
        spellings |= _instants(float(value)) & _INSTANTS_OF_TEXT
    if not among.isdisjoint(AMOUNT_FORMS):
        spellings |= amount_forms(value)
    if not among.isdisjoint(DAY_FORMS):
        spellings |= day_forms(value)
    return spellings | _TEXTS


def _is_strings(value: Json) -> bool:
    """Whether it is a list of strings, or an empty one."""
    listed = cast("list[object]", value) if isinstance(value, list) else [None]
    return all(isinstance(each, str) for each in listed)


def _instants(number: float) -> set[str]:
    """The epochs that a number may be counted from; zero is an empty cell in all of them."""
    epoch = epoch_of(number)
    return set(EPOCHS) if number == 0 else {epoch.name} if epoch else set()


def says_nothing(value: Json) -> bool:
    """Whether a cell is filled with words for having no value, or with blanks."""
    return isinstance(value, str) and value != "" and value.strip().lower() in _NO_VALUES


def agreed(shared: AbstractSet[str]) -> str:
    """The spelling of a column whose cells share these; what is ambiguous stays text."""
    if any(first in shared and second in shared for first, second in _UNDECIDED):
        return "string"
    if len(shared & EPOCHS.keys()) > 1:  # nothing but zeroes
        shared = shared - EPOCHS.keys()
    return next((name for name in SPELLINGS if name in shared), "json")


def typed(value: Json, spelling: str, zone: tzinfo) -> Json:
    """A cell as its column's type; None for an empty one. Raises: BadRecord."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        return _typed_of_json(value, spelling)
    if spelling in _TEXTS:
        cell = printable(unguarded(value) if spelling == "string" else value)
        return cell if cell.strip() else None
    text = value.strip()
    if spelling == "code":
        return unguarded(text).strip() or None
    if says_nothing(value):
        return None
    if spelling not in spellings_of(text, {spelling}):
        raise BadRecord("bad_record", "a cell does not fit the type of its column")
    return _typed_of_text(text, spelling, zone)


def _typed_of_text(text: str, spelling: str, zone: tzinfo) -> Json:
    """A cell that fits a spelling which is no text."""
    if spelling in DAY_FORMS:
        return day_value(text, spelling, zone)
    if spelling in AMOUNT_FORMS:
        return amount_value(text, spelling)
    if spelling in EPOCHS:
        number = float(text) if "." in text else int(text)
        return EPOCHS[spelling].instant(number) if number else None
    if spelling == "boolean":
        return text.lower() == "true"
    return int(text) if spelling == "integer" else float(text)


def _typed_of_json(value: Json, spelling: str) -> Json:
    """A value that is no text, as its column's type. Raises: BadRecord."""
    if spelling not in spellings_of(value):
        if spelling == "string" and isinstance(value, bool | int | float):
            return str(value)  # the owner says that it is text
        raise BadRecord("bad_record", "a cell does not fit the type of its column")
    if spelling in EPOCHS and isinstance(value, int | float):
        return EPOCHS[spelling].instant(value) if value else None
    return printable_within(value)


def renamed(columns: Iterable[TableColumn], before: str, after: str) -> tuple[TableColumn, ...]:
    """The columns, one of which gets another field."""
    return tuple(replace(c, name=after) if c.name == before else c for c in columns)
