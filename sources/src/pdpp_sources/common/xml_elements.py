"""The elements of a large XML file, each with its place in the file.

Apple's exports begin with a document type that some versions of iOS got wrong, hold control
characters, and are gigabytes long. So they are cut at the names of their elements, as the other
readers cut theirs: memory holds one element, a damaged one costs itself, no document type is read
and no entity of a file's own is ever resolved. Prefixes of namespaces are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from pdpp_kernel.source_item import Skipped
from pdpp_kernel.texts import message
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.text import decoded, unescaped

CHUNK_BYTES = 256 * 1024
LARGEST_ELEMENT_BYTES = 32 * 1024 * 1024
_LONGEST_NAME = 128
_PREFIX = rb"(?:[\w.-]{1,32}:)?"
_DEEPEST = 64
_MOST_PARTS = 200_000  # of one element; a booking of thousands of payments has some tens of each
# An atomic group, as before Python 3.11.5 a possessive repeat of a group goes on behind a quote
# that is never closed; it takes memory for each round, hence the bound.
_HEAD = re.compile(rb"""<[\w.:-]+((?>(?:[^<>"']++|"[^"<]*+"|'[^'<]*+'){0,10000}))>""")
_ATTRIBUTE = re.compile(rb"""([\w.:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_CHARSET = re.compile(rb"""\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.-]{1,20})["']""")
_TAG = re.compile(
    r"""<(/?)(?:[\w.-]{1,32}:)?([\w.-]{1,64})((?>(?:[^<>"']++|"[^"<]*+"|'[^'<]*+'){0,1000}))>"""
)
_HALVES = re.compile(r"&#(5[5-7]\d{3});&#(5[5-7]\d{3});")
_INNER = re.compile(rb"""<([\w.:-]+)((?>(?:[^<>"']++|"[^"<]*+"|'[^'<]*+'){0,10000}))>([^<]*)""")


class XmlElement(msgspec.Struct, frozen=True):
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
            yield decoded(name), _attributes(attributes), _unescaped(decoded(words)).strip()

    def tree(self, charset: str | None = None) -> XmlPart:
        """The whole element as parts in parts. Raises: BadRecord."""
        return _tree(XmlPart(self.name, self.attributes), decoded(self.content, charset))


class XmlPart(msgspec.Struct):
    """An element with what is in it; names are without prefixes, and a path is `a/b/c`."""

    name: str
    attributes: dict[str, str]
    text: str = ""
    parts: list[XmlPart] = msgspec.field(default_factory=list["XmlPart"])

    def all(self, path: str) -> Iterator[XmlPart]:
        """Every part at a path, in their order."""
        name, _, rest = path.partition("/")
        for part in self.parts:
            if part.name == name:
                yield from part.all(rest) if rest else (part,)

    def first(self, *paths: str) -> XmlPart | None:
        """The first part at the first of these paths that has one."""
        return next((part for path in paths for part in self.all(path)), None)

    def said(self, *paths: str) -> str | None:
        """The text at the first of these paths that says something."""
        texts = (part.text.strip() for path in paths for part in self.all(path))
        return next(filter(None, texts), None)


def charset_of_xml(head: bytes) -> str | None:
    """The charset that the first line of a file names."""
    match = _CHARSET.match(head.removeprefix(b"\xef\xbb\xbf"))
    return match.group(1).decode() if match else None


def _tree(root: XmlPart, text: str) -> XmlPart:
    """The parts of an element, from what stands between its tags. Raises: BadRecord."""
    opened, at, count = [root], 0, 0
    while at < len(text):
        begin = text.find("<", at)
        begin = len(text) if begin < 0 else begin
        opened[-1].text += _unescaped(text[at:begin])
        if begin == len(text):
            break
        passed = _passed(text, begin)
        if passed is not None:
            at, words = passed
            opened[-1].text += words
            continue
        tag = _TAG.match(text, begin)
        if tag is None:
            raise BadRecord("bad_record", _FAULTS["bad_record"])
        at, name, head = tag.end(), tag.group(2), tag.group(3)
        if tag.group(1):
            if len(opened) == 1 or opened[-1].name != name:
                raise BadRecord("bad_record", _FAULTS["bad_record"])
            opened.pop()
            continue
        part = XmlPart(name, _attributes(head.encode()))
        opened[-1].parts.append(part)
        count += 1
        if count > _MOST_PARTS or len(opened) > _DEEPEST:
            raise BadRecord("too_large", _FAULTS["too_large"])
        if not head.endswith("/"):
            opened.append(part)
    if len(opened) > 1:
        raise BadRecord("bad_record", _FAULTS["bad_record"])
    return root


def _passed(text: str, begin: int) -> tuple[int, str] | None:
    """The end of a comment, an instruction or text as it stands, with its words.

    Raises: BadRecord.
    """
    for mark, closing in (("<![CDATA[", "]]>"), ("<!--", "-->"), ("<?", "?>"), ("<!", ">")):
        if text.startswith(mark, begin):
            end = text.find(closing, begin)
            if end < 0:
                raise BadRecord("bad_record", _FAULTS["bad_record"])
            words = text[begin + len(mark) : end] if mark == "<![CDATA[" else ""
            return end + len(closing), words
    return None


def _unescaped(text: str) -> str:
    if "&#5" in text:
        text = _HALVES.sub(_joined_halves, text)
    return unescaped(text)


def _joined_halves(match: re.Match[str]) -> str:
    """A character that a program wrote as the two halves that UTF-16 has of it."""
    high, low = int(match[1]), int(match[2])
    if 0xD800 <= high < 0xDC00 <= low < 0xE000:
        return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)
    return match[0]


def cut_elements(
    member: ExportMember, *names: str, opening: Sequence[str] = ()
) -> Iterator[XmlElement | Skipped]:
    """The outermost elements of these names, in their order. Raises: MemberDamaged.

    Of those in `opening`, which hold the others, only the tag that opens them, without content.
    """
    one_of = "|".join(map(re.escape, (*names, *opening))).encode()
    begins = re.compile(rb"<" + _PREFIX + rb"(" + one_of + rb")(?=[\s/>])")
    opened = frozenset(name.encode() for name in opening)
    buffer, offset, at, is_more = b"", 0, 0, True
    with member.open() as stream:
        while True:
            match = begins.search(buffer, at)
            keep = match.start() if match else max(at, len(buffer) - _LONGEST_NAME)
            cut = _cut(buffer, match, opened) if match else None
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
    "bad_record": message("an opening tag of the entry has no matching closing tag"),
    "truncated": message("the file ends in the middle of this entry"),
    "too_large": message("the entry is too large"),
}


class _Cut(msgspec.Struct, frozen=True):
    """Where to read on after an element, and what it holds; or why it is given up."""

    end: int
    fault: str = ""
    head: bytes = b""
    content: bytes = b""


def _cut(buffer: bytes, match: re.Match[bytes], opened: frozenset[bytes]) -> _Cut | None:
    """One element of the part that was read; None if more has to be read to know."""
    head = _HEAD.match(buffer, match.start())
    if head is None:
        is_whole = buffer.find(b"<", match.end()) >= 0
        return _Cut(match.end(), "bad_record") if is_whole else None
    name = match.group(1)
    if head.group(1).endswith(b"/") or name in opened:
        return _Cut(head.end(), "", head.group(1))
    end = re.compile(b"<(/?)" + _PREFIX + name + rb"(?=[\s/>])").search(buffer, head.end())
    if end is None:
        return None
    if not end.group(1):  # none of them holds another of its name: this one has no end
        return _Cut(head.end(), "bad_record")
    return _Cut(end.end(), "", head.group(1), buffer[head.end() : end.start()])


def _attributes(head: bytes) -> dict[str, str]:
    return {
        decoded(name): _unescaped(decoded(double or single))
        for name, double, single in _ATTRIBUTE.findall(head)
    }
