"""The owner's choices, as a form posts them or a command line gives them.

Rule: choices are only words here; `terms` judges them.  What a form shows and does not post
is *not chosen*; `None` means that the question was not put.
Source: docs/contract/authorization-server.md 6.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import quote, unquote

import msgspec
from msgspec.structs import replace

from pdpp_kernel.oauth_errors import NotANarrowing

DEFAULT_EXPIRY = {"continuous": "90d", "single_use": "24h"}


class StreamChoice(msgspec.Struct, frozen=True):
    """What is chosen of one stream; empty time texts leave the bound as asked.

    Shapes: `only`: texts of values by field, as they were ticked or typed.
    """

    wanted: bool = False
    fields: frozenset[str] | None = None
    since: str = ""
    until: str = ""
    resources: frozenset[str] | None = None
    only: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict[str, tuple[str, ...]])


class EntryChoice(msgspec.Struct, frozen=True):
    """What is chosen of one entry."""

    keep: bool = False
    connections: frozenset[str] | None = None
    streams: Mapping[str, StreamChoice] = msgspec.field(default_factory=dict[str, StreamChoice])

    def stream(self, name: str) -> StreamChoice:
        """The choice for a stream; nothing posted is nothing chosen."""
        return self.streams.get(name, StreamChoice())


class Choices(msgspec.Struct, frozen=True):
    """All choices of a decision.  `mode` and `expiry` are `None` for what was asked and usual.

    `records_per_day` bounds reading beside the grant, and can be changed later; so can `events`,
    whether the app may be told when something changes.
    """

    entries: Mapping[int, EntryChoice] = msgspec.field(default_factory=dict[int, EntryChoice])
    mode: str | None = None
    expiry: str | None = None
    ai_training: bool = False
    ends: tuple[str, ...] = ()
    records_per_day: int | None = None
    events: bool = False

    def entry(self, index: int) -> EntryChoice:
        """The choice for an entry; nothing posted is nothing chosen."""
        return self.entries.get(index, EntryChoice())


def box_of(kind: str, index: int, stream: str, field: str | None = None) -> str:
    """The name of a form field of a stream, by which an error names its box."""
    box_name = f"{kind}.{index}.{quote(stream, safe='')}"
    return box_name if field is None else f"{box_name}/{quote(field, safe='')}"


def parse_choices(pairs: Iterable[tuple[str, str]]) -> Choices:
    """The choices of a posted consent form; other fields are not looked at.

    Raises: NotANarrowing, if a field names an impossible entry.
    """
    form = _Form(pairs)
    return Choices(
        entries={index: form.entry(index) for index in form.indexes},
        mode=form.single.get("mode") or None,
        expiry=form.single.get("expiry") or None,
        ai_training=form.single.get("ai_training") == "yes",
        ends=tuple(dict.fromkeys(form.ends)),
        records_per_day=_most(form.single.get("records_per_day", "")),
        events=form.single.get("events") == "yes",
    )


class _Form:
    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.single: dict[str, str] = {}
        self.ends: list[str] = []
        self.fields: dict[tuple[str, int, str], list[str]] = {}
        self.limits: dict[tuple[int, str], dict[str, list[str]]] = {}
        for name, value in pairs:
            self._add(name, value)

    @property
    def indexes(self) -> set[int]:
        return {index for _, index, _ in self.fields} | {index for index, _ in self.limits}

    def entry(self, index: int) -> EntryChoice:
        names = {name for _, at, name in self.fields if at == index and name}
        names |= {name for at, name in self.limits if at == index}
        streams = {name: self._stream(index, name) for name in names}
        is_kept = ("keep", index, "") in self.fields
        if not is_kept and ("kept", index, "") in self.fields:
            # Its tick was taken away, and so are those of its kinds: they would bring it back.
            streams = {n: replace(stream, wanted=False) for n, stream in streams.items()}
        # A kind that was ticked chooses its source.
        ticked = any(stream.wanted for stream in streams.values())
        return EntryChoice(
            keep=is_kept or ticked,
            connections=frozenset(self.fields.get(("conn", index, ""), ())),
            streams=streams,
        )

    def _stream(self, index: int, name: str) -> StreamChoice:
        has_fields = ("fieldset", index, name) in self.fields
        return StreamChoice(
            wanted=("stream", index, name) in self.fields,
            fields=frozenset(self.fields.get(("field", index, name), ())) if has_fields else None,
            since=self._last("since", index, name),
            until=self._last("until", index, name),
            resources=frozenset(self.fields.get(("resource", index, name), ())),
            only={
                field: tuple(dict.fromkeys(texts))
                for field, texts in self.limits.get((index, name), {}).items()
            },
        )

    def _last(self, kind: str, index: int, name: str) -> str:
        return self.fields.get((kind, index, name), [""])[-1].strip()

    def _add(self, name: str, value: str) -> None:
        kind, _, path = name.partition(".")
        if kind == "end" and not path:
            self.ends.append(value)
        elif kind in ("keep", "kept", "conn"):
            self.fields.setdefault((kind, _index(path), ""), []).append(value)
        elif kind in ("stream", "fieldset", "field", "since", "until", "resource"):
            index, _, stream = path.partition(".")
            self.fields.setdefault((kind, _index(index), unquote(stream)), []).append(value)
        elif kind == "only":
            self._limit(path, [value])
        elif kind == "others":
            self._limit(path, [line.strip() for line in value.splitlines() if line.strip()])
        elif not path:
            self.single[name] = value

    def _limit(self, path: str, texts: Iterable[str]) -> None:
        """Values that were ticked, or typed one a line: `{entry}.{stream}/{field}`."""
        index, _, field_path = path.partition(".")
        stream, _, field = map(unquote, field_path.partition("/"))
        limits = self.limits.setdefault((_index(index), stream), {})
        if values := list(texts):
            limits.setdefault(field, []).extend(values)


def _most(text: str) -> int | None:
    text = text.strip()
    if not text:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > 15 or not int(text):
        raise NotANarrowing(
            (
                "Give the maximum number of records per day as a whole number, or "
                "leave the field empty."
            ),
            param="records_per_day",
        )
    return int(text)


def _index(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 3:
        raise NotANarrowing("The form names a source that the app did not ask for.")
    return int(text)
