"""A record's payload at a preview length: what is cut, what is bytes, and a note of either.

Source: docs/contract/mcp-adapter.md 6.2 to 6.4, 8.2. Types do not change, identity is not here,
nothing is left out without a note; bytes are described and never shown.
"""

import re
import unicodedata
from base64 import b64decode, urlsafe_b64decode
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, Literal, NamedTuple

import msgspec

from pdpp_kernel.source_item import TEXT, TEXT_STATE
from pdpp_mcp_server import contract
from pdpp_mcp_server.rs_client.json_values import (
    Json,
    as_count,
    as_list,
    as_text,
    compact,
    first_text,
    is_list,
    is_object,
)

CUT_BACK_CHARS = 32
"""A cut is moved forward by so many characters at most, so that it splits no sign."""
LEAST_CHARS = 256
LEAST_DISTINCT = 8
LEAST_LINE_CHARS = 60
BASE64_TEXT = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
DATA = "data:"
DATA_URL = re.compile(rf"{DATA}([^;,]*)(?:;[^;,]*)*;base64,")
UNKNOWN_BYTES = "application/octet-stream"

EVERYTHING = "*"
"""The field path of a note that stands for many fields at once."""
INDIVIDUAL_NOTES = 12


class BinaryFacts(msgspec.Struct, frozen=True):
    """What is known about bytes that are not shown."""

    mime_type: str
    size_bytes: int | None
    digest: str | None
    blob_id: str | None = None

    @property
    def placeholder(self) -> str:
        """What stands in the record instead."""
        size = "" if self.size_bytes is None else f"{self.size_bytes} bytes "
        return f"[binary {size}{self.mime_type}]"


class Truncation(NamedTuple):
    """One value shown in part, or not at all.

    Units: shown and total are characters for text, items or members for JSON; json_chars is the
           size of the whole value as compact JSON; next_chars is where a text is read on, if not
           after what is shown. A server may not say a total. text_field holds what a file says.
    """

    field_path: str
    kind: Literal["text", "json", "binary"]
    status: Literal["truncated", "omitted", "binary"]
    shown: int = 0
    total: int | None = 0
    json_chars: int = 0
    facts: BinaryFacts | None = None
    next_chars: int | None = None
    text_field: str | None = None


class Measure(NamedTuple):
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
        return cls(preview, max(preview, contract.COMPOUND_FLOOR))


class PayloadMember(NamedTuple):
    """One member of a payload, looked at once: what it holds does not depend on any measure.

    Shapes: value has its inline bytes replaced; note says what bytes it holds.
    Units:  size is characters of a text, or of a compound as compact JSON; 0 for what is never cut.
    """

    name: str
    value: Any
    size: int = 0
    note: Truncation | None = None

    def at(self, measure: Measure) -> tuple[Any, list[Truncation]]:
        """The value as it is shown, and the notes of what is missing."""
        notes = [] if self.note is None else [self.note]
        is_text = isinstance(self.value, str)
        if self.size <= (measure.preview if is_text else measure.compound):
            return self.value, notes
        shown, cut = (
            _cut_text(self, measure.preview) if is_text else _cut_compound(self, measure.compound)
        )
        return shown, [*notes, cut]

    def left_out(self) -> Truncation:
        """The note of a member that is not shown at all."""
        if self.note is not None:
            return self.note
        if isinstance(self.value, str):
            return Truncation(self.name, "text", "omitted", 0, self.size, self.size)
        items = len(self.value) if is_list(self.value) or is_object(self.value) else 1
        return Truncation(self.name, "json", "omitted", 0, items, len(compact(self.value)))


def members_of(payload: Json, declared: frozenset[str] = frozenset()) -> list[PayloadMember]:
    """The members of a payload; declared names the fields whose declaration says bytes."""
    members = [_member(name, value, name in declared) for name, value in payload.items()]
    if TEXT_STATE in payload and as_text(payload.get(TEXT)):
        return [_with_text(member) for member in members]
    return members


def _with_text(member: PayloadMember) -> PayloadMember:
    """A reference to a file, beside which an import put what the file says."""
    note = member.note
    if note is None or note.facts is None or note.facts.blob_id is None:
        return member
    return member._replace(note=note._replace(text_field=TEXT))


def cut_members(
    members: Sequence[PayloadMember], measure: Measure
) -> tuple[Json, list[Truncation]]:
    """The members as they are shown, and the notes of their cuts in order."""
    shown: Json = {}
    cuts: list[Truncation] = []
    kept = len(members) if measure.members is None else measure.members
    for member in members[:kept]:
        shown[member.name], notes = member.at(measure)
        cuts.extend(notes)
    cuts += [member.left_out() for member in members[kept:]]
    return shown, _gathered(cuts, len(members))


def reach_of(members: Sequence[PayloadMember]) -> int:
    """The preview length from which on nothing of these members is cut."""
    return max((member.size for member in members), default=0)


def least_chars(texts: Iterable[tuple[int, int]], preview: int) -> int:
    """What a preview of texts comes to in either face, at least.  Shapes: all and seen chars."""
    kept = preview - CUT_BACK_CHARS
    return sum([max(0, seen - (0 if size <= preview else size - kept)) for size, seen in texts])


def _member(name: str, value: Any, declared: bool) -> PayloadMember:
    if isinstance(value, str):
        if len(value) < LEAST_CHARS and not declared and not value.startswith(DATA):
            return PayloadMember(name, value, len(value))
        facts = binary_facts(value, declared=declared)
        if facts is None:
            return PayloadMember(name, value, len(value))
        return PayloadMember(name, facts.placeholder, note=_binary(name, facts))
    if not value or isinstance(value, int | float):
        return PayloadMember(name, value)
    facts = binary_facts(value)
    if facts is None:
        value, facts = _without_inline_bytes(value)
    size = len(compact(value))
    if facts is None:
        return PayloadMember(name, value, size)
    whole = facts.blob_id is not None and size <= contract.REFERENCE
    return PayloadMember(name, value, 0 if whole else size, _binary(name, facts))


def _binary(name: str, facts: BinaryFacts) -> Truncation:
    return Truncation(name, "binary", "binary", facts=facts)


def _gathered(cuts: list[Truncation], total: int) -> list[Truncation]:
    omitted = [cut for cut in cuts if cut.status == "omitted"]
    if len(omitted) <= INDIVIDUAL_NOTES:
        return cuts
    rest = [cut for cut in cuts if cut.status != "omitted"]
    size = sum(cut.json_chars for cut in omitted)
    return [*rest, Truncation(EVERYTHING, "json", "omitted", total - len(omitted), total, size)]


def _cut_text(member: PayloadMember, preview: int) -> tuple[str, Truncation]:
    value: str = member.value
    shown = value[: cut_position(value, preview)]
    cut = Truncation(member.name, "text", "truncated", len(shown), len(value), len(value))
    return shown + "…", cut


def _cut_compound(member: PayloadMember, limit_chars: int) -> tuple[Any, Truncation]:
    value: Any = member.value
    if is_object(value):
        sizes = (len(compact(key)) + len(compact(item)) + 2 for key, item in value.items())
    else:
        sizes = (len(compact(item)) + 1 for item in value)
    used, kept = 2, 0
    for size in sizes:
        used += size
        if used > limit_chars:
            break
        kept += 1
    shown = dict(islice(value.items(), kept)) if is_object(value) else as_list(value)[:kept]
    return shown, Truncation(member.name, "json", "truncated", kept, len(value), member.size)


def cut_position(text: str, limit_chars: int) -> int:
    """Where to cut so that no combining sequence is split; at most limit_chars."""
    at = limit_chars
    while at > 0 and limit_chars - at < CUT_BACK_CHARS and at < len(text) and _continues(text, at):
        at -= 1
    return at or limit_chars


def _continues(text: str, at: int) -> bool:
    joined = text[at] == "\u200d" or text[at - 1] == "\u200d"
    return joined or unicodedata.category(text[at]) in {"Mn", "Me", "Mc"}


def largest(high: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to high that fits, when of two the smaller fits if the larger does."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def binary_facts(value: object, *, declared: bool = False) -> BinaryFacts | None:
    """The facts of a binary value, or None for anything else.

    A text is binary when its field is declared so, or when it looks like encoded bytes.
    """
    if isinstance(value, str):
        return _text_facts(value, declared)
    return _reference(value) if is_object(value) and as_text(value.get("blob_id")) else None


def _text_facts(value: str, declared: bool) -> BinaryFacts | None:
    prefix = DATA_URL.match(value)
    if prefix:
        return _inline(value[prefix.end() :], prefix[1] or UNKNOWN_BYTES)
    if not value or not (declared or _looks_like_base64(value)):
        return None
    text = "".join(value.split())
    if BASE64_TEXT.fullmatch(text):
        return _inline(text, UNKNOWN_BYTES)
    return BinaryFacts(UNKNOWN_BYTES, None, None)


def _looks_like_base64(value: str) -> bool:
    if len(value) < LEAST_CHARS:
        return False
    encoded = _unwrapped(value)
    if len(encoded) % 4 or not BASE64_TEXT.fullmatch(encoded):
        return False
    return len(set(encoded.rstrip("="))) >= LEAST_DISTINCT


def _unwrapped(value: str) -> str:
    """The value without the line breaks that mail puts into encoded bytes; other texts as is."""
    width = value.find("\n")
    if width < LEAST_LINE_CHARS or not BASE64_TEXT.fullmatch(
        value, 0, width - (value[width - 1] == "\r")
    ):
        return value
    lines = value.split()
    whole = {len(line) for line in lines[:-1]}
    return "".join(lines) if len(whole) == 1 and len(lines[-1]) <= whole.pop() else value


def _inline(text: str, mime_type: str) -> BinaryFacts:
    try:
        decode = urlsafe_b64decode if "-" in text or "_" in text else b64decode
        raw = decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return BinaryFacts(mime_type, len(text) * 3 // 4, None)
    return BinaryFacts(mime_type, len(raw), "sha256:" + sha256(raw).hexdigest())


def _reference(value: Json) -> BinaryFacts:
    digest = first_text(value.get("sha256"), value.get("digest"))
    if digest and not digest.startswith("sha256:"):
        digest = f"sha256:{digest}"
    return BinaryFacts(
        mime_type=as_text(value.get("mime_type")) or UNKNOWN_BYTES,
        size_bytes=as_count(value.get("size_bytes")),
        digest=digest,
        blob_id=as_text(value.get("blob_id")),
    )


def _without_inline_bytes(value: object) -> tuple[object, BinaryFacts | None]:
    """A compound value with inline bytes replaced at any depth, and the facts of the first."""
    found: list[BinaryFacts] = []

    def replaced(item: object) -> object:
        if isinstance(item, str):
            facts = _text_facts(item, declared=False)
            if facts is None:
                return item
            found.append(facts)
            return facts.placeholder
        if is_list(item):
            return [replaced(child) for child in item]
        return {key: replaced(child) for key, child in item.items()} if is_object(item) else item

    shown = replaced(value)
    return (shown, found[0]) if found else (value, None)
