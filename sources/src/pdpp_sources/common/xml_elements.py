"""The elements of a large XML file, each with its place in the file.

Apple's exports begin with a document type that some versions of iOS got wrong, hold control
characters, and are gigabytes long. So they are cut at the names of their elements, as the other
readers cut theirs: memory holds one element, a damaged one costs itself, no document type is read
and no entity of a file's own is ever resolved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape

from pdpp_kernel.source_item import Skipped
from pdpp_kernel.texts import message
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.text import decoded

CHUNK_BYTES = 256 * 1024
LARGEST_ELEMENT_BYTES = 32 * 1024 * 1024
_LONGEST_NAME = 64
# An atomic group, as before Python 3.11.5 a possessive repeat of a group goes on behind a quote
# that is never closed; it takes memory for each round, hence the bound.
_HEAD = re.compile(rb"""<[\w.:-]+((?>(?:[^<>"']++|"[^"<]*+"|'[^'<]*+'){0,10000}))>""")
_ATTRIBUTE = re.compile(rb"""([\w.:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_INNER = re.compile(rb"""<([\w.:-]+)((?>(?:[^<>"']++|"[^"<]*+"|'[^'<]*+'){0,10000}))>([^<]*)""")


@dataclass(frozen=True, slots=True)
class XmlElement:
    """One element: its name, its attributes, and the bytes between its tags."""

    name: str
    position: int
    where: str
    attributes: dict[str, str]
    content: bytes

    def inner(self) -> Iterator[tuple[str, dict[str, str], str]]:
        """Each element further inside: its name, its attributes, the text that it begins with."""
        for match in _INNER.finditer(self.content):
            name, attributes, words = match.groups()
            yield decoded(name), _attributes(attributes), unescape(decoded(words)).strip()


def cut_elements(member: ExportMember, *names: str) -> Iterator[XmlElement | Skipped]:
    """The outermost elements of these names, in their order. Raises: MemberDamaged."""
    one_of = "|".join(map(re.escape, names)).encode()
    begins = re.compile(rb"<(" + one_of + rb")(?=[\s/>])")
    buffer, offset, at, is_more = b"", 0, 0, True
    with member.open() as stream:
        while True:
            match = begins.search(buffer, at)
            keep = match.start() if match else max(at, len(buffer) - _LONGEST_NAME)
            cut = _cut(buffer, match) if match else None
            if match is None or cut is None:
                if is_more and len(buffer) - keep <= LARGEST_ELEMENT_BYTES:
                    buffer, offset, at = buffer[keep:], offset + keep, 0
                    chunk = stream.read(max(CHUNK_BYTES, len(buffer)))
                    buffer, is_more = buffer + chunk, bool(chunk)
                    continue
                if match is None:
                    return
                cut = _Cut(match.end(), "too_large" if is_more else "truncated")
            begin = offset + match.start()
            position, position_text = member.offset + begin, member.where(begin)
            at = cut.end
            if cut.fault:
                yield Skipped(position_text, cut.fault, _FAULTS[cut.fault], position)
            else:
                name = decoded(match.group(1))
                yield XmlElement(name, position, position_text, _attributes(cut.head), cut.content)


_FAULTS = {
    "bad_record": message("the tags of the entry do not match"),
    "truncated": message("the file ends in the middle of this entry"),
    "too_large": message("the entry is too large"),
}


@dataclass(frozen=True, slots=True)
class _Cut:
    """Where to read on after an element, and what it holds; or why it is given up."""

    end: int
    fault: str = ""
    head: bytes = b""
    content: bytes = b""


def _cut(buffer: bytes, match: re.Match[bytes]) -> _Cut | None:
    """One element of the part that was read; None if more has to be read to know."""
    head = _HEAD.match(buffer, match.start())
    if head is None:
        is_whole = buffer.find(b"<", match.end()) >= 0
        return _Cut(match.end(), "bad_record") if is_whole else None
    if head.group(1).endswith(b"/"):
        return _Cut(head.end(), "", head.group(1))
    name = match.group(1)
    end = re.compile(b"<(/?)" + name + rb"(?=[\s/>])").search(buffer, head.end())
    if end is None:
        return None
    if not end.group(1):  # none of them holds another of its name: this one has no end
        return _Cut(head.end(), "bad_record")
    return _Cut(end.end(), "", head.group(1), buffer[head.end() : end.start()])


def _attributes(head: bytes) -> dict[str, str]:
    return {
        decoded(name): unescape(decoded(double or single))
        for name, double, single in _ATTRIBUTE.findall(head)
    }
