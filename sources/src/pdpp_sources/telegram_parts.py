"""What an export from Telegram holds that becomes no record, each named in the report.

That is what an account has beside its chats (contacts, sessions, profile), with how many entries;
and a chat whose messages do not stand where they should. Source: the order in which Telegram
Desktop writes an account (chats come last) and a chat (its messages come last).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from pdpp_kernel.source_item import Data, Json, Skipped
from pdpp_kernel.texts import counted, message
from pdpp_sources.common import json_values
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.json_stream import STRING, parse_object

CHAT_KINDS = rb"[a-z_]+_(?:chat|group|supergroup|channel)|saved_messages|replies|verification_codes"
_CHATS = re.compile(rb'(?<!\\)"(?:left_)?chats"\s*:\s*[{\[]')
_LARGEST_BYTES = 32 * 1024 * 1024
_CHUNK_BYTES, _OVERLAP_BYTES = 1024 * 1024, 64
# A chat from its kind up to the first bracket behind it, which opens its messages.
_CHAT = re.compile(
    rb'[{,\s]"type"\s*:\s*"(?:' + CHAT_KINDS + rb')"'  # in a text the quotes are escaped
    rb"((?>(?:" + STRING + rb"|[^\[\]{}\"]++){0,64}))([\[\]{}])",
    re.DOTALL,
)
_BEFORE_MESSAGES = re.compile(rb'"messages"\s*:\s*\Z')
_LOOKED_AT_BYTES, _LONGEST_CHAT_BYTES = 128 * 1024, 16 * 1024
_READ = frozenset({"about", "chats", "left_chats"})


def other_parts(member: ExportMember) -> Iterator[Skipped]:
    """Each part that stands before the chats of an account, named as not imported."""
    parts = _parts(member)
    if parts is None:
        reason = message("what stands before the chats cannot be read, so it is not imported")
        yield Skipped(member.name, "unknown_record_type", reason, member.offset)
        return
    for name, value in parts.items():
        if name in _READ or not (entries := _entries(value)):
            continue
        reason = message(
            "%(entries)s beside your chats: this part of the export is not imported",
            entries=counted(entries, "entry", "entries"),
        )
        where = f"{member.name}, {name}"
        yield Skipped(where, "unknown_record_type", reason, member.offset)


def _parts(member: ExportMember) -> Data | None:
    """What stands before the chats; None of what is too long or cannot be read."""
    before = _before_chats(member)
    try:
        return None if before is None else parse_object(before)
    except BadRecord:
        return None


def _before_chats(member: ExportMember) -> bytes | None:
    """The object up to its chats, closed behind what comes before them; None of one too long."""
    read = b""
    with member.open() as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            start = max(0, len(read) - _OVERLAP_BYTES)
            read += chunk
            if match := _CHATS.search(read, start):
                return read[: match.start()].rstrip().rstrip(b",") + b"}"
            if len(read) > _LARGEST_BYTES:
                return None
    return read


def _entries(value: Json) -> int:
    """How many entries a part has: those of its list, else itself."""
    if isinstance(value, dict):
        part = cast("Data", value)
        return len(json_values.things(part, "list")) if "list" in part else int(bool(part))
    return len(cast("list[Json]", value)) if isinstance(value, list) else int(bool(value))


def chats_without_messages(member: ExportMember) -> Iterator[Skipped]:
    """Each chat behind whose name and kind no list of messages begins.

    In:  {"name": "Ann", "type": "personal_chat", "id": 7, "m?ssages": [{"id": 1, …
    Out: a report at the place of `"type"`.
    """
    reason = message("no list of messages begins in this chat, so it was not imported")
    for offset in _without_messages(member):
        yield Skipped(member.where(offset), "bad_record", reason, member.end)


def _without_messages(member: ExportMember) -> Iterator[int]:
    buffer, begin, is_more = b"", 0, True
    with member.open() as stream:
        while is_more:
            chunk = stream.read(_LOOKED_AT_BYTES)
            is_more = bool(chunk)
            buffer += chunk
            # What begins further on is looked at again with the bytes behind it.
            end = max(0, len(buffer) - _LONGEST_CHAT_BYTES) if is_more else len(buffer)
            for chat in _CHAT.finditer(buffer):
                facts, bracket = chat.groups()
                is_whole = bracket == b"[" and _BEFORE_MESSAGES.search(facts)
                if chat.start() < end and not is_whole:
                    yield begin + chat.start()
            begin, buffer = begin + end, buffer[end:]
