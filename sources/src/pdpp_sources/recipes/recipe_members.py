"""What may stand in a recipe: the members of each of its tables, and what they hold.

The check of a recipe (`recipe_file.py`) and the JSON Schema that is published of it are both made
from these tables.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pdpp_kernel.source_item import Data
from pdpp_sources.recipes.recipe import AROUND, KINDS

VERSION = 1
KEY = r"[a-z][a-z0-9_]{1,40}"
NAME = r"[a-z][a-z0-9_]{0,60}"
FILE = r"(?:\w[\w .-]{0,60}/){0,4}\{[^{}]{1,100}\}"
URI = r"[A-Za-z][A-Za-z0-9+.-]{0,60}:[^\s\x00-\x1f<>\"{}|\\^`]{1,1900}"
# What a source declaration takes of a name and of a text (docs/contract/resource-server.md).
_NAME_CHARS, _DETAIL_CHARS = 200, 4_096
EPOCH_WORDS = ("seconds", "milliseconds", "microseconds", "nanoseconds")
ORDER_WORDS = ("day-first", "month-first", "by-column")


class Member(msgspec.Struct, frozen=True):
    """One member of a table.

    Shapes: `holds` is `text`, `texts` (one or a list), `alternatives` (a list whose entries are
        such), `number`, `flag`, or the name of another table of `TABLES`: `streams` and the like.
    """

    name: str
    holds: str
    about: str
    required: bool = False
    pattern: str | None = None
    words: tuple[str, ...] = ()
    limit_chars: int | None = None


RECIPE = (
    Member("recipe", "number", f"The version of this format: {VERSION}.", required=True),
    Member("key", "text", "The short name of the source.", required=True, pattern=KEY),
    Member("name", "text", "What people call it.", required=True, limit_chars=_NAME_CHARS),
    Member(
        "detail",
        "text",
        "What is in it, for the page of consent.",
        required=True,
        limit_chars=_DETAIL_CHARS,
    ),
    Member("how_to_export", "text", "How one gets the export.", required=True),
    Member("id", "text", "The URI of the source, if it has one of its own.", pattern=URI),
    Member("zone", "text", "The IANA zone of times that name none; else the owner's."),
    Member("stream", "streams", "The kinds of records.", required=True),
)
STREAM = (
    Member("name", "text", "The name of the stream.", required=True, pattern=NAME),
    Member(
        "label",
        "text",
        "Its name for the page of consent.",
        required=True,
        limit_chars=_DETAIL_CHARS,
    ),
    Member("detail", "text", "What its records tell.", required=True, limit_chars=_DETAIL_CHARS),
    Member(
        "files",
        "texts",
        "Names of its files, in which * stands for anything; behind ! of those that are not.",
    ),
    Member(
        "rows",
        "text",
        "JSON Pointer of its rows in a file of JSON, in which * is any name; empty or left out "
        "where the file itself is the list of rows, or has one on each line.",
    ),
    Member("within", "text", "The stream in whose rows these rows stand."),
    Member("has", "alternatives", "Columns or members that tell its rows from others."),
    Member(
        "only",
        "values",
        'Values that tell its rows from others: { type = "ride" }; a list names several.',
    ),
    Member(
        "key",
        "texts",
        "The fields that tell a record from others; else all of them. Of several some may be "
        "empty; a row in which all are is left out (bad_record).",
    ),
    Member("empty", "texts", "Texts that stand for nothing in all its fields: N/A."),
    Member(
        "repeats",
        "flag",
        "Whether each row of one key is a record of its own, as the lines of one order are; else "
        "only the first is read.",
    ),
    Member("time", "text", "The field that says when it was."),
    Member("end", "text", "The field that says until when it lasted."),
    Member("title", "text", "The field to show first."),
    Member("conversation", "text", "The field that all messages of one conversation share."),
    Member("author", "texts", "The fields that say who wrote it."),
    Member("recipient", "texts", "The fields that say whom it went to."),
    Member("latitude", "text", "The number that says where it was, in degrees north."),
    Member("longitude", "text", "The number that says where it was, in degrees east."),
    Member("category", "text", "The field that says what a payment was for: groceries, rent."),
    Member(
        "file",
        "text",
        "Where the file of a row lies: photos/{md5} is in the folder photos beside the file of the "
        "row, called as its member md5 says, with any ending.",
        pattern=FILE,
    ),
    Member("parents", "relations", "Records of other streams that it belongs to, by a name."),
    Member("fields", "fields", "Its fields, by their names.", required=True),
)
FIELD = (
    Member("from", "texts", "Its column, member or JSON Pointer; a list names alternatives."),
    Member("of", "text", "Instead of `from`: the name of what its row stands in.", words=AROUND),
    Member(
        "is",
        "text",
        "What it is; else a text. A text is searched; a word is what many records share, to group "
        "and filter by; a name (of an author, an artist, a place) is both, and equal whatever the "
        "case of its letters; a string is only filtered by.",
        words=tuple(KINDS),
    ),
    Member("about", "text", "What it means, for people and agents."),
    Member("format", "text", "How a day or an instant is written."),
    Member("zone", "text", "The IANA zone of times that name none."),
    Member("unit", "text", "The unit of all its values: km, EUR."),
    Member("unit_field", "text", "The field that holds the unit or currency of each value."),
    Member("total", "flag", "Whether its values over a stretch of time add up."),
    Member("measure_field", "text", "The field that says what it measures."),
    Member("decimal", "text", "The sign before decimals.", words=(".", ",")),
    Member("split", "text", "The sign between the names of a list that is text; else a comma."),
    Member("empty", "texts", "Texts that stand for nothing in it."),
    Member("sensitive", "flag", "Whether it tells more of a person than most do."),
)
RELATION = (
    Member("stream", "text", "The related stream.", required=True),
    Member("field", "text", "The field that holds the key of the related record.", required=True),
)


def json_schema() -> Data:
    """The JSON Schema of a recipe, as `docs/recipe.schema.json` publishes it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Recipe of a source",
        **_object(RECIPE),
        "$defs": {
            "stream": _object(STREAM),
            "field": {"anyOf": [{"type": "string"}, _object(FIELD)]},
            "relation": _object(RELATION),
        },
    }


def _object(members: tuple[Member, ...]) -> Data:
    return {
        "type": "object",
        "properties": {each.name: _schema_of(each) for each in members},
        "required": [each.name for each in members if each.required],
        "additionalProperties": False,
    }


_ONE_OR_MORE: Data = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
    ]
}
_HELD: dict[str, Any] = {
    "text": {"type": "string", "minLength": 1},
    "texts": _ONE_OR_MORE,
    "alternatives": {"type": "array", "items": _ONE_OR_MORE, "minItems": 1},
    "number": {"const": VERSION},
    "flag": {"type": "boolean"},
    "streams": {"type": "array", "items": {"$ref": "#/$defs/stream"}, "minItems": 1},
    "values": {"type": "object", "additionalProperties": _ONE_OR_MORE},
    "relations": {"type": "object", "additionalProperties": {"$ref": "#/$defs/relation"}},
    "fields": {
        "type": "object",
        "propertyNames": {"pattern": f"^{NAME}$"},
        "additionalProperties": {"$ref": "#/$defs/field"},
        "minProperties": 1,
    },
}


def _schema_of(member: Member) -> Data:
    schema: Data = {**_HELD[member.holds], "description": member.about}
    if member.name == "rows":
        schema.pop("minLength")
    if member.pattern:
        schema["pattern"] = f"^{member.pattern}$"
    if member.limit_chars:
        schema["maxLength"] = member.limit_chars
    return schema | ({"enum": list(member.words)} if member.words else {})
