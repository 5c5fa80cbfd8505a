"""A recipe: what the files of an export are, said in one small file without code.

Source: docs/recipes.md; the words of what it declares are those of docs/contract/resource-server.md
17.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec.structs import replace

from pdpp_kernel.source_item import Data
from pdpp_sources.common import declaration as declared
from pdpp_sources.common.declaration import Field, StreamForm
from pdpp_sources.common.unit_fields import adding_up, currency, in_unit, measuring

Alternatives = tuple[str, ...]
"""Names of one thing, of which a file has one: a name, or a JSON Pointer (RFC 6901)."""


class RecipeField(msgspec.Struct, frozen=True):
    """One field of a stream: where it stands in a row, and what it is.

    Shapes: `kind` is a word of `KINDS`; `form` a word of `EPOCH_WORDS` or `ORDER_WORDS`, or a
        pattern of `strptime`; `of` is a word of `AROUND`, where the value is the name of what the
        row stands in; `empty` are texts that stand for nothing; `split` is the sign between the
        entries of a list that is text;
        `zone` is the IANA name of the zone of times that name none, None for the owner's;
        `decimal` is the sign before the decimals of numbers that are text.
    """

    name: str
    places: Alternatives
    kind: str = "text"
    about: str = ""
    form: str | None = None
    zone: str | None = None
    unit: str | None = None
    unit_field: str | None = None
    decimal: str = "."
    sensitive: bool = False
    of: str | None = None
    empty: tuple[str, ...] = ()
    split: str = ","
    total: bool = False
    measure_field: str | None = None

    @property
    def is_time(self) -> bool:
        """Whether it holds days or instants."""
        return self.kind in ("day", "instant")

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers, of whatever unit."""
        return self.kind in ("whole", "number", "amount", "duration")


class RecipeStream(msgspec.Struct, frozen=True):
    """One stream: which rows of which files are its records.

    Shapes: `rows` is the JSON Pointer of the rows, in which `*` stands for any name or number; in a
        stream `within` another it begins at a row of that one. `has` are places, of each of which a
        row has one, and `only` the values that it has at some. `key` names fields; `file` is where
        the file of a row lies, seen from the file of the row: `photos/{md5}`, with any ending;
        with `repeats` rows of one key are several records, numbered in their order.
    """

    name: str
    label: str
    detail: str
    fields: tuple[RecipeField, ...]
    files: tuple[str, ...] = ()
    rows: str = ""
    within: str | None = None
    has: tuple[Alternatives, ...] = ()
    only: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])
    key: tuple[str, ...] = ()
    repeats: bool = False
    time: str | None = None
    end: str | None = None
    title: str | None = None
    conversation: str | None = None
    latitude: str | None = None
    longitude: str | None = None
    category: str | None = None
    author: tuple[str, ...] = ()
    recipient: tuple[str, ...] = ()
    parents: Mapping[str, tuple[str, str]] = msgspec.field(
        default_factory=dict[str, tuple[str, str]]
    )
    file: str | None = None

    def field(self, name: str) -> RecipeField | None:
        """The field of that name."""
        return next((each for each in self.fields if each.name == name), None)


class Recipe(msgspec.Struct, frozen=True):
    """What one kind of export is."""

    key: str
    name: str
    detail: str
    how_to_export: str
    streams: tuple[RecipeStream, ...]
    source_id: str | None = None

    def inside(self, stream: RecipeStream) -> tuple[RecipeStream, ...]:
        """The streams whose rows stand in those of another."""
        return tuple(each for each in self.streams if each.within == stream.name)

    def declaration(self) -> Data:
        """The source declaration that follows."""
        streams = [_stream_form(self, stream) for stream in self.streams]
        made = declared.declaration(self.key, self.name, self.detail, streams)
        if self.source_id is not None:
            made["source"] = {"kind": "connector", "id": self.source_id}
        return made


KINDS: Mapping[str, Callable[[str, str], Field]] = {
    "text": declared.text,
    "word": declared.word,
    "name": declared.name_word,
    "string": declared.plain,
    "reference": declared.reference,
    "whole": declared.integer,
    "number": declared.number,
    "amount": declared.number,
    "duration": declared.number,
    "currency": currency,
    "flag": declared.flag,
    "day": declared.day,
    "instant": declared.moment,
    "names": declared.names,
    "json": declared.free,
}
"""What a field may be, and how it is declared."""
AROUND = ("file", "folder", "member")
"""What a row stands in, whose name may be a value: its file, the folder, the member of the JSON."""
OF_FILE = ("filename", "mime_type", "size_bytes", "blob_ref", "text", "text_state")
"""The fields of a stream whose records have a file each."""
PARENT = "parent_id"
"""The field of a stream within another that holds the key of the row it stands in."""


def _stream_form(recipe: Recipe, stream: RecipeStream) -> StreamForm:
    fields = [declared.key(), *(_field(stream, each) for each in stream.fields)]
    parents = {name: (of, held_in) for name, (of, held_in) in stream.parents.items()}
    if stream.within is not None:
        held_by = declared.reference(PARENT, "The record that it stands in")
        if stream.conversation == PARENT:
            held_by = declared.conversation(held_by)
        fields.insert(1, held_by)
        parents[stream.within] = (stream.within, PARENT)
    if stream.file is not None:
        fields += [
            declared.text("filename", "Name of the file", title=stream.title is None),
            declared.word("mime_type", "Kind of file"),
            declared.integer("size_bytes", "Size in bytes", summed=True),
            declared.blob(),
            *declared.file_text(),
        ]
    return StreamForm(
        stream.name,
        stream.label,
        stream.detail,
        fields,
        time_field=stream.time,
        parents=parents,
        children={each.name: (each.name, PARENT) for each in recipe.inside(stream)},
        semantic=[each.name for each in stream.fields if each.kind == "text"],
    )


def _field(stream: RecipeStream, asked: RecipeField) -> Field:
    """A field with what it is for in its stream."""
    about = asked.about or f"Column {asked.places[0]}"
    made = KINDS[asked.kind](asked.name, about)
    if asked.name == stream.time:
        make_time = declared.day if asked.kind == "day" else declared.moment
        made = make_time(asked.name, about, event=True)
    if asked.name == stream.title:
        made = replace(made, schema=made.schema | {"x_pdpp_role": "primary-title"})
        is_said = stream.conversation is not None or bool(stream.author)
        made = made if is_said or asked.kind != "text" else declared.shared(made)
    unit = asked.unit or ("s" if asked.kind == "duration" else None)
    if unit or asked.unit_field:
        made = in_unit(made, by=asked.unit_field, unit=unit)
        made = replace(made, summed=asked.is_number)
    made = adding_up(made) if asked.total else made
    made = measuring(made, asked.measure_field) if asked.measure_field else made
    roles = {
        stream.end: declared.ending,
        stream.conversation: declared.conversation,
        stream.latitude: declared.latitude,
        stream.longitude: declared.longitude,
        stream.category: declared.category,
        **dict.fromkeys(stream.author, declared.written_by),
        **dict.fromkeys(stream.recipient, declared.sent_to),
    }
    made = roles[asked.name](made) if asked.name in roles else made
    return declared.sensitive(made) if asked.sensitive else made
