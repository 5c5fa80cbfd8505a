"""A record's payload at a preview length, and a note of everything that was left out.

Source: MCP adapter contract 6.2 to 6.4. Types do not change, identity is not here, nothing is left
out without a note.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.evidence.binary import (
    BinaryFacts,
    binary_facts,
    without_inline_bytes,
)
from personal_server.rs_client.json_values import Json, as_list, compact, is_list, is_object

everything = "*"
"""The field path of a note that stands for many fields at once."""
individual_notes = 12


@dataclass(frozen=True, slots=True)
class Cut:
    """One value shown in part, or not at all.

    Units: shown and total are characters for text, items or members for JSON; json_chars is the
           size of the whole value as compact JSON.
    """

    field_path: str
    kind: Literal["text", "json", "binary"]
    status: Literal["truncated", "omitted", "binary"]
    shown: int = 0
    total: int = 0
    json_chars: int = 0
    facts: BinaryFacts | None = None


@dataclass(frozen=True, slots=True)
class Measure:
    """How much of each value to show.

    Shapes: members limits the payload's members, None for all of them.
    Units:  preview, compound: characters.
    """

    preview: int
    compound: int
    members: int | None = None

    @classmethod
    def of(cls, preview: int) -> "Measure":
        """The measure of one preview length."""
        return cls(preview, max(preview, budgets.compound_floor))


least = Measure(budgets.shortest_preview, 0)


def cut_payload(payload: Json, measure: Measure) -> tuple[Json, list[Cut]]:
    """The payload as it is shown, and the notes of its cuts in member order."""
    shown: Json = {}
    cuts: list[Cut] = []
    kept = len(payload) if measure.members is None else measure.members
    for position, (name, value) in enumerate(payload.items()):
        if position >= kept:
            cuts.append(_omitted(name, value))
            continue
        shown[name], noted = cut_value(name, value, measure)
        cuts.extend(noted)
    return shown, _gathered(cuts, len(payload))


def _gathered(cuts: list[Cut], total: int) -> list[Cut]:
    omitted = [cut for cut in cuts if cut.status == "omitted"]
    if len(omitted) <= individual_notes:
        return cuts
    rest = [cut for cut in cuts if cut.status != "omitted"]
    size = sum(cut.json_chars for cut in omitted)
    return [*rest, Cut(everything, "json", "omitted", total - len(omitted), total, size)]


def cut_value(name: str, value: Any, measure: Measure) -> tuple[Any, list[Cut]]:
    """One value as it is shown."""
    facts = binary_facts(value)
    if facts is not None:
        note = Cut(name, "binary", "binary", json_chars=0, facts=facts)
        if facts.blob_id is None:
            return facts.placeholder, [note]
        shown, cuts = _compound(name, value, measure)
        return shown, [note, *cuts]
    if isinstance(value, str):
        return _text(name, value, measure.preview)
    if is_list(value) or is_object(value):
        bare, nested = without_inline_bytes(value)
        shown, cuts = _compound(name, bare, measure)
        note = [] if nested is None else [Cut(name, "binary", "binary", facts=nested)]
        return shown, [*note, *cuts]
    return value, []


def _omitted(name: str, value: Any) -> Cut:
    facts = binary_facts(value)
    if facts is not None:
        return Cut(name, "binary", "binary", facts=facts)
    if isinstance(value, str):
        return Cut(name, "text", "omitted", 0, len(value), len(value))
    items = len(value) if is_list(value) or is_object(value) else 1
    return Cut(name, "json", "omitted", 0, items, len(compact(value)))


def _text(name: str, value: str, preview: int) -> tuple[str, list[Cut]]:
    if len(value) <= preview:
        return value, []
    shown = value[: cut_position(value, preview)]
    return shown + "…", [Cut(name, "text", "truncated", len(shown), len(value), len(value))]


def cut_position(text: str, limit_chars: int) -> int:
    """Where to cut so that no combining sequence is split; at most limit_chars."""
    at = limit_chars
    while at > 0 and limit_chars - at < 32 and at < len(text) and _continues(text, at):
        at -= 1
    return at or limit_chars


def _continues(text: str, at: int) -> bool:
    joined = text[at] == "\u200d" or text[at - 1] == "\u200d"
    return joined or unicodedata.category(text[at]) in {"Mn", "Me", "Mc"}


def _compound(name: str, value: Any, measure: Measure) -> tuple[Any, list[Cut]]:
    size = len(compact(value))
    if size <= measure.compound or not value:
        return value, []
    items: list[tuple[Any, Any]] = list(pairs(value))
    kept = _fitting(items, measure.compound, keyed=is_object(value))
    note = Cut(name, "json", "truncated", kept, len(items), size)
    if is_object(value):
        return dict(items[:kept]), [note]
    return [item for _, item in items[:kept]], [note]


def pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    """Members of an object, or items of an array with their places."""
    return value.items() if is_object(value) else enumerate(as_list(value))


def _fitting(items: list[tuple[Any, Any]], limit_chars: int, *, keyed: bool) -> int:
    used = 2
    for kept, (key, item) in enumerate(items):
        used += len(compact(item)) + 1 + (len(compact(key)) + 1 if keyed else 0)
        if used > limit_chars:
            return kept
    return len(items)
