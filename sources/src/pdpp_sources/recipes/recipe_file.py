"""The file of a recipe (TOML), checked: every fault has a code, and names its key and its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import partial
from operator import eq
from typing import Any, cast
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from pdpp_kernel.source_item import Data
from pdpp_kernel.texts import message
from pdpp_sources.common.errors import RecipeError
from pdpp_sources.recipes.recipe import (
    OF_FILE,
    PARENT,
    Alternatives,
    Recipe,
    RecipeField,
    RecipeStream,
)
from pdpp_sources.recipes.recipe_members import (
    EPOCH_WORDS,
    FIELD,
    FILE,
    KEY,
    NAME,
    ORDER_WORDS,
    RECIPE,
    RELATION,
    STREAM,
    URI,
    VERSION,
    Member,
)

MOST_STREAMS, MOST_FIELDS = 60, 120
_LINE = re.compile(r"at line (\d+)")
_SEE = message("docs/recipes.md lists what may stand in a recipe.")
Path = tuple[str | int, ...]


def parse_recipe(text: str, name: str) -> Recipe:
    """The recipe that a file of that name holds. Raises: RecipeError."""
    return _RecipeText(text, name).recipe()


class _RecipeText:
    """The text of one recipe, so that a fault can say where it stands."""

    def __init__(self, text: str, name: str) -> None:
        self._text = text
        self._name = name

    def recipe(self) -> Recipe:
        """Raises: RecipeError."""
        table = self._read()
        if table.get("recipe") != VERSION:
            raise self._fault(
                "recipe_version",
                ("recipe",),
                message(
                    "the line `recipe = %(version)s` is missing or names another version",
                    version=VERSION,
                ),
            )
        self._check_table(table, RECIPE, ())
        zone = self._zone(table, ())
        streams = cast("list[Data]", table["stream"])
        if len(streams) > MOST_STREAMS:
            raise self._fault("recipe_wrong_type", ("stream",), message("there are too many"))
        built = tuple(self._stream(each, ("stream", n), zone) for n, each in enumerate(streams))
        key, name, detail = (str(table[n]) for n in ("key", "name", "detail"))
        recipe = Recipe(key, name, detail, str(table["how_to_export"]), built, table.get("id"))
        self._check_streams(recipe)
        return recipe

    def _read(self) -> Data:
        try:
            return tomllib.loads(self._text)
        except (ValueError, RecursionError) as error:
            found = _LINE.search(str(error))
            line = int(found[1]) if found else self._text.count("\n") + 1
            raise self._error("recipe_unreadable", line, message("it is not TOML")) from None

    def _check_table(self, table: Mapping[str, Any], members: Sequence[Member], at: Path) -> None:
        """Every member known, of its type, and the required ones there."""
        by_name = {member.name: member for member in members}
        for name in table:
            if name not in by_name:
                near = get_close_matches(name, by_name, 1)
                what = (
                    message("there is no such key; the nearest is `%(near)s`", near=near[0])
                    if near
                    else message("there is no such key")
                )
                raise self._fault("recipe_unknown_key", (*at, name), what)
        for member in members:
            if member.name in table:
                self._check_member(table[member.name], member, (*at, member.name))
            elif member.required:
                what = message("the key `%(name)s` is missing", name=member.name)
                raise self._fault("recipe_missing_key", at, what)

    def _check_member(self, value: Any, member: Member, at: Path) -> None:
        if not _HOLDS[member.holds](value) and not (member.name == "rows" and value == ""):
            what = message("it must be %(kind)s", kind=_SAID[member.holds])
            raise self._fault("recipe_wrong_type", at, what)
        if member.limit_chars and len(value) > member.limit_chars:
            what = message("it must be at most %(limit)s characters", limit=member.limit_chars)
            raise self._fault("recipe_wrong_type", at, what)
        if member.pattern and not re.fullmatch(member.pattern, value):
            raise self._fault("recipe_unknown_value", at, _PATTERNS_SAID[member.pattern])
        if member.words and value not in member.words:
            what = message("it must be one of %(words)s", words=", ".join(member.words))
            raise self._fault("recipe_unknown_value", at, what)

    def _stream(self, table: Data, at: Path, zone: str | None) -> RecipeStream:
        self._check_table(table, STREAM, at)
        empty = _texts(table.get("empty", ()))
        fields = self._fields(table["fields"], (*at, "fields"), zone, empty)
        relations: dict[str, tuple[str, str]] = {}
        for name, relation in table.get("parents", {}).items():
            self._check_table(relation, RELATION, (*at, "parents", name))
            if not re.fullmatch(NAME, name):
                fault_at = (*at, "parents", name)
                raise self._fault("recipe_unknown_value", fault_at, _PATTERNS_SAID[NAME])
            relations[name] = (relation["stream"], relation["field"])
        return RecipeStream(
            table["name"],
            table["label"],
            table["detail"],
            fields,
            files=_texts(table.get("files", ())),
            rows=table.get("rows", ""),
            within=table.get("within"),
            has=tuple(_texts(each) for each in table.get("has", ())),
            only={name: _texts(each) for name, each in table.get("only", {}).items()},
            key=_texts(table.get("key", ())),
            repeats=table.get("repeats", False),
            time=table.get("time"),
            end=table.get("end"),
            title=table.get("title"),
            conversation=table.get("conversation"),
            latitude=table.get("latitude"),
            longitude=table.get("longitude"),
            category=table.get("category"),
            author=_texts(table.get("author", ())),
            recipient=_texts(table.get("recipient", ())),
            parents=relations,
            file=table.get("file"),
        )

    def _fields(
        self, table: Mapping[str, Any], at: Path, zone: str | None, empty: tuple[str, ...]
    ) -> tuple[RecipeField, ...]:
        if len(table) > MOST_FIELDS:
            raise self._fault("recipe_wrong_type", at, message("there are too many"))
        fields = [self._field(name, each, (*at, name), zone) for name, each in table.items()]
        return tuple(replace(each, empty=(*each.empty, *empty)) for each in fields)

    def _field(self, name: str, value: Any, at: Path, zone: str | None) -> RecipeField:
        if not re.fullmatch(NAME, name) or name in ("id", PARENT):
            what = message("a field has another name: lower-case letters, digits and _, not `id`")
            raise self._fault("recipe_unknown_value", at, what)
        facts: Data = {"from": value} if isinstance(value, str) else value
        self._check_table(facts, FIELD, at)
        kind, form = facts.get("is", "text"), facts.get("format")
        if form is not None:
            self._check_format(form, kind, (*at, "format"))
        if kind == "amount" and not ({"unit", "unit_field"} & facts.keys()):
            what = message("the key `%(name)s` is missing", name="unit_field")
            raise self._fault("recipe_missing_key", at, what)
        return RecipeField(
            name,
            _texts(facts.get("from", name)),
            kind,
            facts.get("about", ""),
            form,
            self._zone(facts, at) or zone,
            facts.get("unit"),
            facts.get("unit_field"),
            facts.get("decimal", "."),
            facts.get("sensitive", False),
            facts.get("of"),
            _texts(facts.get("empty", ())),
            facts.get("split", ","),
            facts.get("total", False),
            facts.get("measure_field"),
        )

    def _check_format(self, form: str, kind: str, at: Path) -> None:
        """Only a day or an instant has one, a word or a pattern that can be read."""
        words = (*EPOCH_WORDS, *ORDER_WORDS)
        if kind not in ("day", "instant"):
            what = message("only a day or an instant has a format")
        elif form not in words and not _is_pattern(form):
            what = message("it must be one of %(words)s", words=", ".join((*words, "%Y-%m-%d …")))
        else:
            return
        raise self._fault("recipe_unknown_value", at, what)

    def _zone(self, table: Mapping[str, Any], at: Path) -> str | None:
        name = table.get("zone")
        if name is None:
            return None
        try:
            return ZoneInfo(name).key
        except (ValueError, OSError, KeyError):
            what = message("it must be the name of a time zone, such as Europe/Rome or UTC")
            raise self._fault("recipe_unknown_value", (*at, "zone"), what) from None

    def _check_streams(self, recipe: Recipe) -> None:
        """What of a stream names another part of the recipe, names one that is there."""
        streams = {stream.name: stream for stream in recipe.streams}
        for number, stream in enumerate(recipe.streams):
            at: Path = ("stream", number)
            if streams[stream.name] is not stream:
                what = message("another stream has this name")
                raise self._fault("recipe_unknown_value", (*at, "name"), what)
            for member, name in _fields_named(stream):
                is_held_by = member == ("conversation",) and name == PARENT and stream.within
                if stream.field(name) is None and not is_held_by:
                    what = message("there is no field of this name")
                    raise self._fault("recipe_unknown_field", (*at, *member), what)
            for member in ("time", "end"):
                named = stream.field(getattr(stream, member) or "")
                if named is not None and not named.is_time:
                    what = message("this field must be a day or an instant")
                    raise self._fault("recipe_wrong_type", (*at, member), what)
            related = [(("within",), stream.within)] if stream.within is not None else []
            related += [(("parents", n), of) for n, (of, _) in stream.parents.items()]
            for member, of in related:
                if of not in streams:
                    what = message("there is no stream of this name")
                    raise self._fault("recipe_unknown_field", (*at, *member), what)
            for name in stream.parents.keys() & {s.name for s in recipe.inside(stream)}:
                what = message("a stream within this one has this name")
                raise self._fault("recipe_unknown_value", (*at, "parents", name), what)
            self._check_found(stream, at)
        for number, stream in enumerate(recipe.streams):
            if not _has_outermost(stream, streams):
                what = message(
                    "each of these streams is within another of them, and none is in a file"
                )
                raise self._fault("recipe_unknown_value", ("stream", number, "within"), what)

    def _check_found(self, stream: RecipeStream, at: Path) -> None:
        """A stream says how its rows are told from others, and leaves a file's fields alone."""
        if stream.rows and not stream.rows.startswith("/"):
            what = message("it must begin with /, as every JSON Pointer does")
            raise self._fault("recipe_unknown_value", (*at, "rows"), what)
        for taken in OF_FILE if stream.file else ():
            if stream.field(taken) is not None:
                what = message(
                    "rename this field: a stream with files gets one of this name by itself"
                )
                raise self._fault("recipe_unknown_value", (*at, "fields", taken), what)
        if stream.within is None and not stream.has:
            what = message("the key `%(name)s` is missing", name="has")
            raise self._fault("recipe_missing_key", at, what)
        if stream.within is None and stream.rows and not stream.files:
            what = message("the key `%(name)s` is missing", name="files")
            raise self._fault("recipe_missing_key", at, what)

    def _fault(self, code: str, at: Path, what: str) -> RecipeError:
        return self._error(code, _line_of(self._text, at), what, _spelled(at))

    def _error(self, code: str, line: int, what: str, key: str = "") -> RecipeError:
        place = message("line %(line)s", line=str(line))
        if key:
            place = message("line %(line)s, `%(key)s`", line=str(line), key=key)
        sentence = message(
            "The recipe %(name)s cannot be used: %(place)s: %(what)s.",
            name=self._name,
            place=place,
            what=what,
        )
        return RecipeError(code, sentence, _SEE)


def _fields_named(stream: RecipeStream) -> Iterator[tuple[Path, str]]:
    """Every field that the stream names, and where it does."""
    for member in ("time", "end", "title", "conversation", "latitude", "longitude", "category"):
        if (name := getattr(stream, member)) is not None:
            yield (member,), name
    for member in ("key", "author", "recipient"):
        for name in getattr(stream, member):
            yield (member,), name
    for relation, (_, name) in stream.parents.items():
        yield ("parents", relation, "field"), name
    for each in stream.fields:
        if each.unit_field is not None:
            yield ("fields", each.name, "unit_field"), each.unit_field
        if each.measure_field is not None:
            yield ("fields", each.name, "measure_field"), each.measure_field


def _has_outermost(stream: RecipeStream, streams: Mapping[str, RecipeStream]) -> bool:
    """Whether a stream stands in a file, or within one that does."""
    for _ in streams:
        if stream.within is None:
            return True
        stream = streams[stream.within]
    return False


def _is_pattern(form: str) -> bool:
    """Whether `strptime` reads what `strftime` writes by a pattern.

    In: `%d.%m.%Y`, `%q`, `%Y %Y`. Out: true; false, as there is no such directive; false, as none
    may come twice.
    """
    try:
        datetime.strptime(datetime(2024, 1, 31, tzinfo=UTC).strftime(form), form)  # noqa: DTZ007
    except (ValueError, re.error):
        return False
    return "%" in form


def _texts(value: Any) -> Alternatives:
    return (value,) if isinstance(value, str) else tuple(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _are_texts(value: Any) -> bool:
    return _is_text(value) or _is_list(value, _is_text)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_list(value: Any, test: Callable[[Any], bool]) -> bool:
    entries = cast("list[Any]", value) if isinstance(value, list) else []
    return bool(entries) and all(map(test, entries))


def _is_table_of(value: Any, test: Callable[[Any], bool]) -> bool:
    return isinstance(value, dict) and all(map(test, cast("Data", value).values()))


def _are_fields(value: Any) -> bool:
    return bool(value) and _is_table_of(value, lambda each: isinstance(each, str | dict))


_HOLDS: Mapping[str, Callable[[Any], bool]] = {
    "text": _is_text,
    "texts": _are_texts,
    "alternatives": partial(_is_list, test=_are_texts),
    "number": partial(eq, VERSION),
    "flag": lambda value: isinstance(value, bool),
    "streams": partial(_is_list, test=_is_table),
    "values": partial(_is_table_of, test=_are_texts),
    "relations": partial(_is_table_of, test=_is_table),
    "fields": _are_fields,
}
_SAID: Mapping[str, str] = {
    "text": message("text in quotes"),
    "texts": message("text in quotes, or a list of such"),
    "alternatives": message("a list of names, or of lists of names"),
    "number": message("a number"),
    "flag": message("true or false"),
    "streams": message("one or more tables, each under the heading [[stream]]"),
    "values": message("a table of texts, or of lists of texts"),
    "relations": message("a table of tables with `stream` and `field`"),
    "fields": message("a table of fields"),
}


_PATTERNS_SAID: Mapping[str, str] = {
    **dict.fromkeys(
        (KEY, NAME), message("it must be lower-case letters, digits and _, a letter first")
    ),
    FILE: message("it must be folders and a member in braces, such as photos/{md5}"),
    URI: message("it must be a URI, such as https://example.org/rides"),
}


def _spelled(at: Path) -> str:
    """A place as people write it: `stream[2].fields.title.is`, the streams counted from 1."""
    spelled = ""
    for part in at:
        spelled += f"[{part + 1}]" if isinstance(part, int) else f".{part}"
    return spelled.lstrip(".")


_KEY = r"""(?:[\w-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]\]?\s*(?:#.*)?$")
_PAIR = re.compile(rf"\s*({_DOTTED})\s*=")
_PART = re.compile(_KEY)


def _line_of(text: str, at: Path) -> int:
    """The line on which the deepest part of a place begins; TOML's reader does not say.

    In: ("stream", 1, "fields", "when", "is"), where `when = {is = "time"}` is the third line of
    the second [[stream]]. Out: the number of that line in the file.
    """
    wanted = [part for part in at if isinstance(part, str)]
    number = next((part for part in at if isinstance(part, int)), None)
    best, line_found, header, counted = 0, 1, list[str](), -1
    for line_number, line in enumerate(text.split("\n"), 1):
        if match := _HEADER.match(line):
            header = [part.strip("\"'") for part in _PART.findall(match[2])]
            counted += match[1] == "[[" and header == ["stream"]
            here = header
        elif match := _PAIR.match(line):
            here = [*header, *(part.strip("\"'") for part in _PART.findall(match[1]))]
        else:
            continue
        if number is not None and here[0] == "stream" and counted != number:
            continue
        if len(here) > best and here == wanted[: len(here)]:
            best, line_found = len(here), line_number
    return line_found
