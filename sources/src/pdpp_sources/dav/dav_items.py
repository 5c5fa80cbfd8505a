"""Items of a collection, fetched many at once, and one by one where a server cannot do that.

Rule: an item that cannot be had costs itself only; a calendar's items bear its name, as an export
of the calendar does, so that both have the same keys.
Source: RFC 4791, 7.9; RFC 6352, 8.7.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urljoin

import msgspec

from pdpp_sources.dav.dav_changes import GONE
from pdpp_sources.dav.dav_discovery import DavCollection
from pdpp_sources.dav.dav_messages import LARGEST_ITEM_BYTES, ItemGone, ItemRefused, ItemSeen
from pdpp_sources.dav.dav_paths import item_path
from pdpp_sources.dav.dav_requests import DavKind, multiget
from pdpp_sources.dav.dav_session import DavSession, NotAnswered

AT_ONCE = 50
_TOO_LARGE, _UNKNOWN, _NOT_GIVEN = "too_large", "export_not_recognized", "item_not_given"
_NAME = re.compile(
    rb"^X-WR-CALNAME[:;][^\r\n]*(?:\r?\n[ \t][^\r\n]*)*\r?\n", re.MULTILINE | re.IGNORECASE
)
_BEGIN = re.compile(rb"\A\s*(?:\xef\xbb\xbf)?\s*(BEGIN:VCALENDAR[ \t]*\r?\n)", re.IGNORECASE)
_ESCAPED = re.compile(r"[\\,;]")
Wanted = Mapping[str, tuple[str, str | None]]
ItemFound = ItemSeen | ItemGone | ItemRefused


class DavItems(msgspec.Struct, frozen=True):
    """Fetches items of one collection.

    Shapes: `marks` tell items whose server has no etags, by what they hold.
    """

    session: DavSession
    kind: DavKind
    collection: DavCollection
    marks: Mapping[str, str]

    def fetched(self, wanted: Wanted) -> Iterator[ItemFound]:
        """Each that was asked for, once.  Raises: AccountTrouble."""
        paths, gets_many = list(wanted), True
        for begin in range(0, len(paths), AT_ONCE):
            part = paths[begin : begin + AT_ONCE]
            contents: Mapping[str, bytes | None] = {}
            if gets_many:
                try:
                    contents = self._many([wanted[path][0] for path in part])
                except NotAnswered:
                    gets_many = False
            for path in part:
                yield from self._judged(path, wanted[path], contents)

    def _many(self, hrefs: Sequence[str]) -> dict[str, bytes | None]:
        """What a multiget gives, by path; None for what is too large.  Raises: NotAnswered."""
        answers, _ = self.session.listed(
            "REPORT", self.collection.url, None, multiget(self.kind, hrefs)
        )
        found: dict[str, bytes | None] = {}
        for answer in answers:
            data = answer.properties.get(self.kind.data)
            path = item_path(answer.href, self.collection.url)
            if data is not None and path is not None and path not in found:
                found[path] = None if data.is_cut else data.text.encode()
        return found

    def _judged(
        self, path: str, item: tuple[str, str | None], contents: Mapping[str, bytes | None]
    ) -> Iterator[ItemFound]:
        href, etag = item
        try:
            content = contents[path] if path in contents else self._alone(href)
        except NotAnswered as refused:
            gone = refused.status in GONE
            yield ItemGone(path) if gone else ItemRefused(path, etag or "", _NOT_GIVEN)
            return
        mark = etag or _hashed(content or b"")
        if etag is None and self.marks.get(path) == mark:
            return
        if content is None or len(content) > LARGEST_ITEM_BYTES:
            yield ItemRefused(path, mark, _TOO_LARGE)
        elif not content.lstrip(b"\xef\xbb\xbf \t\r\n").upper().startswith(self.kind.begins):
            yield ItemRefused(path, mark, _UNKNOWN)
        else:
            yield ItemSeen(path, mark, named(content, self.collection.name))

    def _alone(self, href: str) -> bytes | None:
        return self.session.item(urljoin(self.collection.url, href))


def named(content: bytes, name: str) -> bytes:
    """A calendar's item with the name of the calendar; of anything else, what it is."""
    begin = _BEGIN.match(content)
    if begin is None:
        return content
    escaped = _ESCAPED.sub(r"\\\g<0>", " ".join(name.split()))
    line = f"X-WR-CALNAME:{escaped}\r\n".encode()
    return content[: begin.end()] + line + _NAME.sub(b"", content[begin.end() :])


def _hashed(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
