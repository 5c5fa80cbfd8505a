"""What a process that reads exports and the one that asked for it say to each other.

Each message is a length and MessagePack; the bytes of a record's blobs follow it as they are.
MessagePack holds values only: whoever got hold of the reader could send nothing that runs.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from pdpp_kernel.source_item import Data, TextState, ThreadLinks

COLUMN_KINDS = ("text", "code", "number", "day", "month-first", "instant")
"""What the owner may say that a column of a table holds."""


Text = Any
"""A sentence as `domain/texts.py` renders it."""


class Message(msgspec.Struct, array_like=True, tag=True):
    """One of the messages below."""


class KnownColumn(msgspec.Struct, array_like=True, frozen=True):
    """A column of a table that is stored: its field, its spelling if that was kept, its type.

    Shapes: `spelling` as in `tables.columns.SPELLINGS`; `kind` is the JSON type or format; `unit`
        is the one of all its values, `unit_field` the field that says it of each row,
        `is_currency` where it is such a field itself, and `is_prose` where it is found by meaning.
    """

    field: str
    spelling: str | None
    kind: str
    unit: str | None = None
    unit_field: str | None = None
    is_currency: bool = False
    is_prose: bool = False


class KnownTable(msgspec.Struct, array_like=True, frozen=True):
    """What is stored of a table whose next file is to be read.

    Shapes: `streams` have their columns by the names that files give them; `times` the field of
        each stream that is its time; `keys` the column that names its rows, empty where they are
        known by their content, nothing where that cannot be told. Without streams only the key and
        the name are given.
    """

    connector_key: str
    name: str
    streams: dict[str, dict[str, KnownColumn]] = {}
    times: dict[str, str] = {}
    keys: dict[str, str] = {}


class Look(Message):
    """Say who reads what of a path.

    `costly` are the places not to be tried again, `failed` those where the reader met an error of
    its own; `copies` the files read in place of others;
    `further_parts` of an export that was cut into archives; `within` the folder to stay in;
    `kinds` what the owner says of the columns of a table, by their names; `known` is what is
    stored of that table; `beneath` the folder to which reading is restricted instead of the path;
    `recipes` are the texts of the owner's recipes by their paths, None where one cannot be read;
    `recipe` is the one to read by.
    """

    path: str
    connector_key: str | None
    columns: tuple[str | None, str | None, str | None]
    zone: str
    costly: list[str]
    copies: dict[str, str]
    further_parts: list[str]
    within: str | None = None
    kinds: dict[str, str] = {}
    known: KnownTable | None = None
    beneath: str | None = None
    recipes: dict[str, str | None] = {}
    recipe: str | None = None
    failed: list[str] = []


class Read(Message):
    """Send the items of one reading from a place on."""

    reading: int
    start: int


class ReadFile(Message):
    """Say what a file says, whose bytes follow; the rest is what others say of it."""

    size_bytes: int
    mime_type: str | None
    filename: str | None


class ListSources(Message):
    """Say which sources there are, those of other packages and of recipes among them."""

    recipes: dict[str, str | None] = {}


class Ready(Message):
    """The reader runs; `beyond_limits` is what this system could not take from it.

    Shapes: `connector_keys` of the built-in sources; those of others are loaded when asked for.
    """

    connector_keys: list[str]
    beyond_limits: list[str]


class KnownSource(Message):
    """A source; `package` is the name and version of the one that it comes from, if not ours.

    Shapes: `recipe` is the path of the owner's recipe that describes it.
    """

    connector_key: str
    declaration: Data
    how_to_export: str
    package: str | None
    recipe: str | None = None


class UnusableRecipe(Message):
    """A recipe of the owner that is not used, and why."""

    path: str
    code: str
    sentence: Text


class UnusableReader(Message):
    """An entry point of `pdpp.sources` that gives no reader; `fault` says why."""

    name: str
    package: str
    fault: str


class KnownSources(Message):
    """All sources in the order in which they are asked; `unusable` are readers of others."""

    sources: list[KnownSource]
    unusable: list[UnusableReader]
    unusable_recipes: list[UnusableRecipe] = []


class SeenColumn(Message):
    """A column of a table: its stream, its name there and as a field, its type as owners call it.

    Shapes: `why` as in `TableColumn`; `examples` are up to three of its cells.
    """

    stream: str
    name: str
    field: str
    kind: str
    why: str
    examples: list[str]


class SeenReading(Message):
    """One source, and its part of the path; `files` names what it reads.

    Shapes: `columns` of tables, and `full_name` with what the name of the file says of when it is;
        other sources have none; `package` is that of the reader, if it is not ours; `by_recipe`
        where a recipe reads.
    """

    connector_key: str
    declaration: Data
    why: str
    fingerprint: str
    captured_at: datetime
    files: list[str]
    begins_at: int
    total_bytes: int
    columns: list[SeenColumn] = []
    full_name: str = ""
    package: str | None = None
    by_recipe: bool = False


class RecipeInside(Message):
    """A recipe that lies in the export which it describes, and is not used for that.

    Shapes: `name` of its file there; `source` is what it calls the source, `labels` and `details`
        what it says of the streams; `files` are those that it would read.
    """

    name: str
    text: str
    source: str
    labels: list[str]
    details: list[str]
    files: list[str]


class Seen(Message):
    """What a path holds; `unread` names the files that nobody reads, by what they are.

    `faults` are errors of readers of other packages, which were passed over.
    """

    total_bytes: int
    readings: list[SeenReading]
    refused: list[SkippedItem]
    unread: dict[str, list[str]]
    faults: list[str]
    unusable_recipes: list[UnusableRecipe] = []
    recipes_inside: list[RecipeInside] = []


class Refused(Message):
    """The path cannot be read at all; `faults` and `recipes_inside` as in `Seen`."""

    code: str
    sentence: Text
    next_step: Text
    faults: list[str]
    recipes_inside: list[RecipeInside] = []


class Misguided(Message):
    """What the owner said of the columns does not fit."""

    code: str
    reason: Text


class BlobFacts(Message):
    """A blob whose bytes follow."""

    json_path: str
    mime_type: str
    sha256: str
    size_bytes: int
    filename: str | None


class RecordItem(Message):
    """One record."""

    stream: str
    data: dict[str, Any]
    position: int
    blobs: list[BlobFacts]
    thread: ThreadLinks | None


class SkippedItem(Message):
    """Something passed over."""

    where: str
    code: str
    reason: Text
    position: int


class SaidByFile(Message):
    """What a file says."""

    state: TextState
    text: str | None


class End(Message):
    """That was the last item; `used_zone` where times without a zone were among them."""

    used_zone: bool = False


class Broken(Message):
    """The reader met a fault of its own; `fault` is the name of the error and its line of code."""

    fault: str


Request = Look | Read | ReadFile | ListSources
Reply = (
    Ready
    | KnownSources
    | Seen
    | Refused
    | Misguided
    | RecordItem
    | SkippedItem
    | SaidByFile
    | End
    | Broken
)
