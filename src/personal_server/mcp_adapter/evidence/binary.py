"""Values that are bytes: recognised, described, never shown.

Source: MCP adapter contract 8.2.
"""

import re
from base64 import b64decode, urlsafe_b64decode
from dataclasses import dataclass
from hashlib import sha256

from personal_server.rs_client.json_values import (
    Json,
    as_count,
    as_text,
    first_text,
    is_list,
    is_object,
)

least_chars = 256
least_distinct = 8
least_passage_chars = 64
least_line_chars = 60
base64_text = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
data_url = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,")


@dataclass(frozen=True, slots=True)
class BinaryFacts:
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


def binary_facts(value: object, *, declared: bool = False) -> BinaryFacts | None:
    """The facts of a binary value, or None for anything else.

    A text is binary when its field is declared so, or when it looks like encoded bytes.
    """
    if is_object(value):
        return _reference(value) if as_text(value.get("blob_id")) else None
    if not isinstance(value, str):
        return None
    prefix = data_url.match(value)
    if prefix:
        return _inline(value[prefix.end() :], prefix[1] or "application/octet-stream")
    if _looks_like_base64(value) or (declared and value):
        return _encoded("".join(value.split()))
    return None


def _encoded(text: str) -> BinaryFacts:
    if base64_text.fullmatch(text):
        return _inline(text, "application/octet-stream")
    return BinaryFacts("application/octet-stream", None, None)


def _looks_like_base64(value: str) -> bool:
    if len(value) < least_chars:
        return False
    encoded = _unwrapped(value)
    if len(encoded) % 4 or not base64_text.fullmatch(encoded):
        return False
    return len(set(encoded.rstrip("="))) >= least_distinct


def _unwrapped(value: str) -> str:
    """The value without the line breaks that mail puts into encoded bytes; other texts as is."""
    width = value.find("\n")
    if width < least_line_chars or not base64_text.fullmatch(
        value, 0, width - (value[width - 1] == "\r")
    ):
        return value
    lines = value.split()
    whole = {len(line) for line in lines[:-1]}
    return "".join(lines) if len(whole) == 1 and len(lines[-1]) <= whole.pop() else value


def is_encoded_passage(text: str) -> bool:
    """Whether a passage is a stretch of encoded bytes rather than words."""
    if len(text) < least_passage_chars or not base64_text.fullmatch(text):
        return False
    return len(set(text)) >= least_distinct


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
        mime_type=first_text(value.get("mime_type")) or "application/octet-stream",
        size_bytes=as_count(value.get("size_bytes")),
        digest=digest,
        blob_id=as_text(value.get("blob_id")),
    )


def without_inline_bytes(value: object) -> tuple[object, BinaryFacts | None]:
    """A compound value with inline bytes replaced at any depth, and the facts of the first."""
    found: list[BinaryFacts] = []

    def replaced(item: object) -> object:
        if isinstance(item, str):
            facts = binary_facts(item)
            if facts is None:
                return item
            found.append(facts)
            return facts.placeholder
        if is_list(item):
            return [replaced(child) for child in item]
        return {key: replaced(child) for key, child in item.items()} if is_object(item) else item

    shown = replaced(value)
    return (shown, found[0]) if found else (value, None)
