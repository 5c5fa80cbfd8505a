"""The people of an address header, however real programs write them.

An address list is read so that every good address of it survives whatever stands beside it: names
that are addresses, brackets, names with a comma and no quotes, semicolons, groups, remarks, routes.
What is no address is kept as a name without one, and told apart by `reads_as_nobody`.
Source: RFC 5322, section 3.4 and 4.4, where programs follow it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from pdpp_sources.common.text import one_line, printable
from pdpp_sources.mail.encoded_words import ENCODED_WORD, decode_words

LONGEST_LIST_CHARS = 300_000
LONGEST_NAME_CHARS = 300
LONGEST_ADDRESS_CHARS = 320
_MOST_WORDS_OF_GROUP = 50
_LONGEST_WRITTEN_CHARS = 1_000
_REMEMBERED_CHARS = 4_096
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_REMARK = r"\((?:[^()\\]|\\.|\((?:[^()\\]|\\.|\([^()]{0,200}\))*\))*\)"
_WORD = r"=\?[^?\s]{1,100}\?[bBqQ]\?[^?\s]*\?="
_TOKEN = re.compile(
    rf"(?P<quoted>{_QUOTED})(?P<at>@[^\s,;<>\"]+)?"
    rf"|(?P<remark>{_REMARK})"
    rf"|(?P<angle><[^<>]*>|<[^<>,;]*)"
    rf"|(?P<word>{_WORD})"
    r"|(?P<literal>@\[[^\]\s,;]{0,200}\])"
    r"|(?P<comma>,)|(?P<semicolon>;)|(?P<colon>:)"
    r"|(?P<blank>\s+)"
    r"|(?P<plain>\\.|[^\s\"(<=@,;:\\]+|.)",
    re.DOTALL,
)
_PAIR = re.compile(r"\\(.)", re.DOTALL)
_ADDRESS = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^@\s<>()",;]+)@(?:\[[^\]\s]+\]|[^@\s<>()\[\]",;:]+)')
# bounded, since what is searched may hold no `@` for a long stretch
_IN_WORDS = re.compile(
    r"(?:mailto:)?([^@\s<>()\[\]\"',;:]{1,128}@[^@\s<>()\[\]\"',;:]{1,253})", re.IGNORECASE
)
# its first part names no site that mail could go to
_TWICE_AT = re.compile(r"[^@\s.]{1,128}(?:\.[^@\s.]{1,128}){0,20}@[^@\s.]{1,128}@\S{1,253}")
_SCHEME = re.compile(r"\A(?:mailto|smtp):", re.IGNORECASE)
_ROUTE = re.compile(r"\A@[^:]*:")
_EMPTY_GROUP = re.compile(r"[^@:]{1,100}:\s*;")
_SAYS_SOMETHING = re.compile(r"\w|@")
_LOCAL = re.compile(r"[A-Za-z0-9._+-]{1,64}")
_AROUND_AT = re.compile(r"\s*([@.])\s*")


class Address(msgspec.Struct, frozen=True):
    """A mailbox of somebody: what they are called, and where they are reached."""

    name: str
    email: str

    def __str__(self) -> str:
        return (
            f"{self.name} <{self.email}>" if self.name and self.email else self.name or self.email
        )


class _ListEntry(msgspec.Struct):
    """What stands between two separators: its words, remarks and what was in angles.

    Shapes: `ended_by` is the separator behind it, or `<` where its address ended it.
    """

    words: list[str] = msgspec.field(default_factory=list[str])
    remarks: list[str] = msgspec.field(default_factory=list[str])
    angle: str | None = None
    ended_by: str = ""
    has_quoted: bool = False

    @property
    def text(self) -> str:
        return "".join(self.words).strip()


def parse_addresses(value: str) -> tuple[Address, ...]:
    """Everybody in one header; an entry that names no address has an empty `email`.

    In: `Doe, John <john@x.org>, ann@y.org; nobody`. Out: John of that address, called `Doe, John`;
    ann@y.org without a name; a name `nobody` with itself as address, as local mail has it.
    Shapes: `value` is unfolded, its encoded words as they are.
    """
    if len(value) > _REMEMBERED_CHARS:
        return tuple(_read_list(value))
    return _remembered(value)


def shown(addresses: Iterable[Address]) -> list[str]:
    """Addresses as people write them."""
    return [str(address) for address in addresses]


def reads_as_nobody(address: Address) -> bool:
    """Whether an entry of a list is none that mail could be sent to."""
    return not address.email


@lru_cache(maxsize=8192)
def _remembered(value: str) -> tuple[Address, ...]:
    """The same few people stand in most messages of a mailbox."""
    return tuple(_read_list(value))


def _read_list(value: str, *, again: bool = True) -> Iterator[Address]:
    remainder = value[LONGEST_LIST_CHARS:]
    for entry in _joined(_entries(value[:LONGEST_LIST_CHARS])):
        yield from _people(entry, again=again)
    if remainder:
        yield Address(one_line(printable(remainder), LONGEST_NAME_CHARS), "")


def _entries(value: str) -> Iterator[_ListEntry]:
    """Cut a list at its separators, groups without their names."""
    entry = _ListEntry()
    last_semicolon = value.rfind(";")
    for match in _TOKEN.finditer(value):
        kind, token = match.lastgroup or "", match.group()
        if match["quoted"] is not None:
            entry.has_quoted = True
            entry.words.append(token)
        elif kind == "remark":
            entry.remarks.append(_PAIR.sub(r"\1", token[1:-1]))
        elif kind in ("comma", "semicolon"):
            entry.ended_by = token
            yield entry
            entry = _ListEntry()
        elif kind == "angle":
            entry.angle, entry.ended_by = token.strip("<>").strip(), "<"
            if entry.angle or entry.words:
                yield entry
            entry = _ListEntry()
        elif kind == "colon" and _begins_group(entry, value, match.end(), last_semicolon):
            entry = _ListEntry()
        else:
            entry.words.append(token)
    yield entry


def _begins_group(entry: _ListEntry, value: str, at: int, last_semicolon: int) -> bool:
    """Whether a colon ends the name of a group, or the word `mailto`, and not a part of a name."""
    if len(entry.words) > _MOST_WORDS_OF_GROUP:
        return False
    name = entry.text
    if not name or "@" in name:
        return False
    if _SCHEME.fullmatch(f"{name}:") or last_semicolon >= at:
        return True
    following = value[at : at + 1000].strip()
    first = re.split(r"[,<]", following, maxsplit=1)[0].strip()
    return not following or bool(_ADDRESS.fullmatch(first))


def _joined(entries: Iterable[_ListEntry]) -> Iterator[_ListEntry]:
    """Put together what commas in a name without quotes tore apart: `Doe, John <john@x>`.

    Remarks behind an address in angles are its own.
    """
    waiting: list[_ListEntry] = []
    before: _ListEntry | None = None
    for entry in entries:
        if before is not None and entry.angle is None and not entry.text:
            before.remarks += entry.remarks
            yield before
            before = None
            continue
        if before is not None:
            yield before
            before = None
        if entry.angle is None:
            if entry.ended_by == "," and entry.text and "@" not in entry.text:
                waiting.append(entry)
                continue
            yield from waiting
            waiting = []
            yield entry
            continue
        if waiting and not _names_itself(entry.text):
            for earlier in reversed(waiting):
                entry.words[:0] = [earlier.text, ", " if entry.text else ""]
                entry.remarks[:0] = earlier.remarks
        else:
            yield from waiting
        waiting = []
        before = entry
    if before is not None:
        yield before
    yield from waiting


def _names_itself(text: str) -> bool:
    return "@" in text


def _people(entry: _ListEntry, *, again: bool) -> Iterator[Address]:
    """Who an entry names: nobody where it is empty, several where a separator is missing."""
    text = entry.text or " ".join(entry.remarks).strip()
    if entry.angle is not None:
        yield from _in_angles(entry, entry.text)
    elif _SAYS_SOMETHING.search(text):
        yield from _of_words(text, entry, again=again)


def _in_angles(entry: _ListEntry, text: str) -> Iterator[Address]:
    inner = entry.angle or ""
    if "(" in inner:
        inner = re.sub(_REMARK, "", inner).strip() or inner
    inside = re.split(r"[,;]", _ROUTE.sub("", inner))
    addresses = [address for address in map(_mailbox, inside) if address]
    name = _name(text, entry.remarks)
    if not addresses and _EMPTY_GROUP.match(inner):
        return
    if not addresses and (outside := _IN_WORDS.search(text)):
        # the two were exchanged: `ann@example.org <Ann>`
        yield _address(_name(inner, entry.remarks), outside[1])
        return
    if not addresses and _LOCAL.fullmatch(inner):
        addresses = [inner]
    if not addresses:
        if name or inner:
            yield Address(name or one_line(decode_words(inner), LONGEST_NAME_CHARS), "")
        return
    yield _address(name, addresses[0])
    yield from (_address("", address) for address in addresses[1:])


def _of_words(text: str, entry: _ListEntry, *, again: bool) -> Iterator[Address]:
    """Who an entry without angles names: `ann@x`, `Ann ann@x`, `ann@x bob@y`, `root`."""
    remarks = entry.remarks if text == entry.text else []
    if again and ENCODED_WORD.search(text) and "@" in (plain := decode_words(text)):
        # a program encoded an address together with its name
        yield from _read_list(plain, again=False)
        return
    whole = _mailbox(text)
    if whole:
        yield _address(_name("", remarks), whole)
        return
    matches = [] if entry.has_quoted or _TWICE_AT.fullmatch(text) else [*_IN_WORDS.finditer(text)]
    if matches:
        begin = 0
        for match in matches:
            before = text[begin : match.start()].rstrip("[( ")
            begin = match.end()
            behind = text[begin:].lstrip("]):> ") if match is matches[-1] else ""
            yield _address(_name(f"{before} {behind}", remarks), match[1])
            remarks = []
        return
    inner = _unquoted(text)
    if again and "@" in inner and inner != text:
        # a program quoted an address together with its name
        yield from _read_list(inner, again=False)
    elif _LOCAL.fullmatch(text):
        yield _address(_name("", remarks), text)
    else:
        yield Address(_name(text, remarks), "")


def _mailbox(text: str) -> str | None:
    """The address that a text is, without a route or a scheme before it."""
    if len(text) > _LONGEST_WRITTEN_CHARS:
        return None
    text = _ROUTE.sub("", _SCHEME.sub("", text.strip().strip("'`")))
    if " " in text and not text.startswith('"'):
        text = _AROUND_AT.sub(r"\1", text)
    text = text.rstrip(".")
    return text if _ADDRESS.fullmatch(text) else None


def _address(name: str, email: str) -> Address:
    email = printable(email)[:LONGEST_ADDRESS_CHARS]
    return Address("" if name.casefold() == email.casefold() else name, email)


def _name(text: str, remarks: Iterable[str]) -> str:
    """What somebody is called, without quotes around it; remarks stand behind it."""
    if text.count('"') == 1:
        text = text.replace('"', "")  # it was never closed
    name = one_line(decode_words(_unquoted(text.strip().lstrip(":>").rstrip("<"))))
    if len(name) > 1 and name[0] == name[-1] == "'":
        name = name[1:-1].strip()
    remark = one_line(decode_words(" ".join(remarks)))
    if name and remark:
        return f"{name} ({remark})"[:LONGEST_NAME_CHARS]
    return (name or remark)[:LONGEST_NAME_CHARS]


def _unquoted(text: str) -> str:
    """The text without the quotes that hold its parts, and without the backslashes in them."""
    return re.sub(_QUOTED, lambda match: _PAIR.sub(r"\1", match[0][1:-1]), text, flags=re.DOTALL)
