"""What the pages of Google Voice say: messages of a conversation, or a call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import unescape
from pathlib import PurePosixPath

from selectolax.lexbor import LexborHTMLParser, LexborNode

from pdpp_kernel.source_item import Data, SourceItem, SourceRecord, stable_id
from pdpp_kernel.texts import message
from pdpp_sources.common.attachments import kind_of, with_file
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.html_text import html_to_text
from pdpp_sources.common.source import one_record
from pdpp_sources.common.text import decoded, one_line, or_none, printable
from pdpp_sources.common.times import from_iso, iso_seconds

LARGEST_PAGE_BYTES = 16 * 1024 * 1024
_HEAD_BYTES = 32 * 1024
_MESSAGE = re.compile(rb'<div class="message">')
_OTHER = re.compile(
    rb'<a class="tel" href="tel:([^"<>]{0,100})">\s*<span class="fn">([^<>]{0,500})</span>'
)
_TITLE = re.compile(rb"<title>([^<>]{0,1000})</title>")
_NAMED = re.compile(r"(.*?) - (?:\w+ - )?\d{4}-\d\d-\d\dT")
# What Google writes where a message has nothing but files.
_NO_WORDS = frozenset({"MMS Sent", "MMS Received"})
_ME = "me"
_CALLS = {
    "missed": "missed",
    "placed": "outgoing",
    "received": "incoming",
    "voicemail": "voicemail",
    "recorded": "recorded",
}


@dataclass(frozen=True, slots=True)
class _VoiceChat:
    """A conversation: the numbers of the others, and what they are called."""

    id: str
    name: str | None
    numbers: list[str]
    told: set[str] = field(repr=False)


class VoicePages:
    """One reading of what was claimed."""

    def __init__(self, export: Export) -> None:
        self.pages = [member for member in export.members if member.suffix == ".html"]
        self._files: dict[str, ExportMember] = {}
        for member in export.members:
            if member.suffix != ".html":
                path = PurePosixPath(member.name)
                self._files[str(path)] = self._files[str(path.with_suffix(""))] = member
        self._told = set[str]()
        self._numbers: dict[str, str] | None = None

    def page_items(self, member: ExportMember) -> Iterator[SourceItem]:
        """What a page holds. Raises: BadRecord."""
        content = _whole(member)
        if b'<div class="haudio">' in content:
            build = partial(self._call, content, member)
            yield from one_record(member.name, member.offset, build)
            return
        starts = [found.start() for found in _MESSAGE.finditer(content)]
        if not starts:
            raise BadRecord("bad_record", message("the page holds neither a message nor a call"))
        chat = self._chat(content, starts[0], member)
        alike: dict[str, int] = {}
        for start, end in zip(starts, [*starts[1:], len(content)], strict=True):
            position = member.offset + start
            build = partial(self._message, content[start:end], chat, position, member, alike)
            yield from one_record(member.where(start), position, build)

    def _chat(self, content: bytes, first: int, member: ExportMember) -> _VoiceChat:
        """The conversation of a page: with whom its head says, else with who wrote in it."""
        others = _OTHER.findall(content, 0, first) or _OTHER.findall(content)[:1]
        named = {_line(number): _line(name) for number, name in others}
        if not any(named):
            # I alone wrote: its title says to whom, and another page that one's number.
            title = _TITLE.search(content)
            lines = decoded(title[1]).split("\n") if title else [""]
            called = _NAMED.fullmatch(f"{PurePosixPath(member.name).stem}T")
            name = one_line(unescape(lines[-1]), 200) or (called[1] if called else "")
            number = self._number_of(name)
            named = {number or (name if name.startswith("+") else ""): name}
        numbers = sorted(filter(None, named))
        name = ", ".join(named[each] or each for each in named)
        own = stable_id("chat", *map(_bare, numbers)) if numbers else stable_id("chat", name)
        return _VoiceChat(own, or_none(one_line(name, 200)), numbers, self._told)

    def _number_of(self, name: str) -> str | None:
        """The number that somebody of that name wrote or called from, in any page."""
        if self._numbers is None:
            self._numbers = {}
            for page in self.pages:
                for number, called in _OTHER.findall(page.head(_HEAD_BYTES)):
                    if number:
                        self._numbers.setdefault(_line(called), _line(number))
        return self._numbers.get(name) if name else None

    def _message(
        self,
        content: bytes,
        chat: _VoiceChat,
        position: int,
        member: ExportMember,
        alike: dict[str, int],
    ) -> Iterator[SourceItem]:
        """A message with its files, and the conversation before its first. Raises: BadRecord."""
        tree = LexborHTMLParser(decoded(content))
        sent_at = _when(tree.css_first("abbr.dt"))
        called = tree.css_first("cite .fn")
        is_mine = called.tag == "abbr" if called else None
        number = _number(tree.css_first("cite a.tel"))
        quoted = tree.css_first("q")
        words = or_none(printable(html_to_text(quoted.html or "")).strip()) if quoted else None
        files = _files_in(tree)
        author = None if is_mine is None else _ME if is_mine else _called(called) or number
        own = stable_id("msg", chat.id, sent_at, _ME if is_mine else number, words, *files)
        alike[own] = alike.get(own, 0) + 1
        data: Data = {
            "id": own if alike[own] == 1 else f"{own}.{alike[own]}",
            "chat_id": chat.id,
            "chat_name": chat.name,
            "sent_at": sent_at,
            "author": author,
            "author_kind": "person" if author else None,
            "number": None if is_mine else number,
            "is_from_me": is_mine,
            "own_number": number if is_mine else None,
            "text": None if files and words in _NO_WORDS else words,
            "file_count": len(files),
        }
        if chat.id not in chat.told:
            chat.told.add(chat.id)
            facts: Data = {"id": chat.id, "name": chat.name, "members": chat.numbers}
            yield SourceRecord("chats", facts, position)
        yield SourceRecord("messages", data, position)
        for count, name in enumerate(files, 1):
            yield from self._file(name, data, count, position, member)

    def _file(
        self, name: str, sent: Data, count: int, position: int, page: ExportMember
    ) -> Iterator[SourceItem]:
        member = self._beside(page, name)
        filename = PurePosixPath(member.name if member else name).name
        data: Data = {
            "id": f"{sent['id']}.f{count}",
            "message_id": sent["id"],
            "sent_at": sent["sent_at"],
            "filename": one_line(printable(filename), 255),
            "mime_type": kind_of(filename),
            "size_bytes": None,
        }
        yield from with_file(SourceRecord("files", data, position), member)

    def _call(self, content: bytes, member: ExportMember) -> Iterator[SourceItem]:
        """A call or a voicemail. Raises: BadRecord."""
        tree = LexborHTMLParser(decoded(content))
        began_at = _when(tree.css_first("abbr.published"))
        number = _number(tree.css_first(".contributor a.tel"))
        tags = {str(tag.attributes.get("href")).rpartition("#")[2] for tag in tree.css("a[rel]")}
        direction = next((word for tag, word in _CALLS.items() if tag in tags), None)
        heard = tree.css_first(".full-text")
        sound = tree.css_first("audio")
        name = (sound.attributes.get("src") or "") if sound else ""
        data: Data = {
            "id": stable_id("call", number, began_at, direction),
            "began_at": began_at,
            "number": number,
            "name": _called(tree.css_first(".contributor .fn")),
            "direction": direction,
            "duration": _seconds(tree.css_first("abbr.duration")),
            "transcript": or_none(printable(heard.text()).strip()) if heard else None,
            "filename": None,
            "mime_type": None,
            "size_bytes": None,
        }
        if name:
            data |= {"filename": one_line(printable(name), 255), "mime_type": kind_of(name)}
        record = SourceRecord("calls", data, member.offset)
        yield from with_file(record, self._beside(member, name)) if name else [record]

    def _beside(self, page: ExportMember, name: str) -> ExportMember | None:
        return self._files.get(str(PurePosixPath(page.name).parent / name))


def _whole(member: ExportMember) -> bytes:
    if member.size_bytes > LARGEST_PAGE_BYTES:
        raise BadRecord("too_large", message("the page is over 16 MB"))
    with member.open() as stream:
        return stream.read()


def _files_in(tree: LexborHTMLParser) -> Sequence[str]:
    """The files that a message shows or links to; links in its words are none."""
    found = tree.css(".message > div img, .message > div a, .message > div audio, .message > video")
    names = (node.attributes.get("src") or node.attributes.get("href") or "" for node in found)
    return list(dict.fromkeys(name for name in names if name and ":" not in name[:12]))


def _when(node: LexborNode | None) -> str:
    """The instant of an element. Raises: BadRecord."""
    return from_iso((node.attributes.get("title") or "") if node else "")


def _number(node: LexborNode | None) -> str | None:
    link = (node.attributes.get("href") or "") if node else ""
    return or_none(one_line(link.removeprefix("tel:"), 200))


def _called(node: LexborNode | None) -> str | None:
    return or_none(one_line(node.text(), 200)) if node else None


def _seconds(node: LexborNode | None) -> int | None:
    seconds = iso_seconds((node.attributes.get("title") or "") if node else "")
    return None if seconds is None else int(seconds)


def _line(html: bytes) -> str:
    return one_line(unescape(decoded(html)), 200)


def _bare(number: str) -> str:
    """What a number is whichever way it is written."""
    return re.sub(r"[\s().\-/]", "", number)
