"""What somebody did in Google's products: as JSON, or as the page of HTML that is the default."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import parse_qs, urlsplit

from selectolax.lexbor import (  # pyright: ignore[reportMissingModuleSource]
    LexborHTMLParser,
)

from personal_server.sources import shape
from personal_server.sources.errors import BadRecord
from personal_server.sources.export import Member
from personal_server.sources.identity import stable_id
from personal_server.sources.item import Data, Skipped, SourceItem, SourceRecord
from personal_server.sources.json_stream import Element
from personal_server.sources.port import one_record
from personal_server.sources.text import decoded, one_line, or_none
from personal_server.sources.times import rendered

_CELL = b'<div class="outer-cell'
CHUNK_BYTES = 1024 * 1024
LARGEST_CELL_BYTES = 4 * 1024 * 1024
_EN_DATE = re.compile(
    r"([A-Z][a-z]{2})[a-z]* (\d{1,2}), (\d{4}), (\d{1,2}):(\d{2}):(\d{2})\s?([AP]M)?\s*(GMT[+-]\d+"
    r"(?::\d{2})?|[A-Z]{2,5}|[+-]\d{2}:?\d{2})?"
)
_EU_DATE = re.compile(
    r"(\d{1,2})[. ]\s?(\d{1,2}|[A-Za-zÀ-ÿ]{3,9})\.?[. ]\s?(\d{4}),? (\d{1,2}):(\d{2}):(\d{2})\s*"
    r"(GMT[+-]\d+(?::\d{2})?|[A-Z]{2,5})?"
)
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_HOURS = {
    "UTC": 0, "GMT": 0, "WET": 0, "BST": 1, "CET": 1, "WEST": 1, "MEZ": 1, "CEST": 2, "EET": 2,
    "MESZ": 2, "EEST": 3, "MSK": 3, "JST": 9, "AEST": 10, "AEDT": 11, "EST": -5, "EDT": -4,
    "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7, "AKST": -9, "HST": -10,
}  # fmt: skip


def activity_records(element: Element) -> Iterator[SourceItem]:
    """One entry of an activity list. Raises: BadRecord."""
    value = element.value
    occurred_at = shape.instant(value, "time")
    if occurred_at is None:
        raise BadRecord("bad_date", "its time cannot be read")
    channel = (shape.objects(value, "subtitles") or [Data()])[0]
    products = shape.strings(value, "products")
    yield _record(
        occurred_at,
        product=(products or [shape.line(value, "header") or "Google"])[0],
        title=shape.line(value, "title"),
        url=shape.line(value, "titleUrl"),
        channel=(shape.line(channel, "name"), shape.line(channel, "url")),
        position=element.position,
    )


def _record(
    occurred_at: str,
    *,
    product: str,
    title: str | None,
    url: str | None,
    channel: tuple[str | None, str | None],
    position: int,
) -> SourceRecord:
    """The record of the stream that an activity's address belongs to."""
    address = urlsplit(url) if url and "\\" not in url and "[" not in url else urlsplit("")
    youtube = "youtube." in address.netloc
    searched = parse_qs(address.query).get("search_query" if youtube else "q", [])
    data: Data = {
        "id": stable_id("act", occurred_at, url or title, product),
        "occurred_at": occurred_at,
        "title": title,
        "url": url,
    }
    if youtube and address.path == "/results" and searched:
        return SourceRecord("youtube_searches", data | {"query": one_line(searched[0])}, position)
    if youtube and (address.path == "/watch" or address.path.startswith("/shorts/")):
        name, link = channel
        watched = {"title": _without_verb(title, url), "channel": name, "channel_url": link}
        return SourceRecord("youtube_watches", data | watched, position)
    facts = {"product": product, "query": one_line(searched[0]) if searched else None}
    return SourceRecord("activity", data | facts, position)


def _without_verb(title: str | None, url: str | None) -> str | None:
    """The video's own title; Google puts "Watched" before it, in the account's language."""
    if title is None or (url and title.endswith(url)):
        return title
    for verb in ("Watched ", "Hai guardato ", "Has visto ", "Vous avez regardé "):
        if title.startswith(verb):
            return title.removeprefix(verb)
    return title.removesuffix(" angesehen")


def read_activity_page(member: Member) -> Iterator[SourceItem]:
    """The entries of an HTML page, cut at their cells while it streams by."""
    for offset, cell in _cells(member):
        position = member.offset + offset
        where = f"{member.name} at byte {offset}"
        yield from one_record(where, position, lambda c=cell, p=position: [_cell_record(c, p)])


def _cells(member: Member) -> Iterator[tuple[int, bytes]]:
    buffer, offset, started = b"", 0, False
    with member.open() as stream:
        while chunk := stream.read(CHUNK_BYTES):
            buffer += chunk
            while (found := buffer.find(_CELL, 1 if started else 0)) >= 0:
                if started:
                    yield offset, buffer[:found]
                buffer, offset, started = buffer[found:], offset + found, True
            if len(buffer) > LARGEST_CELL_BYTES:
                raise BadRecord("too_large", "an entry is too large; the rest was not read")
    if started:
        yield offset, buffer


def _cell_record(cell: bytes, position: int) -> SourceItem:
    tree = LexborHTMLParser(decoded(cell))
    bodies = tree.css(".content-cell")
    if not bodies:
        return Skipped("activity page", "bad_record", "an entry without content", position)
    links = bodies[0].css("a")
    words = one_line(bodies[0].text(separator=" "))
    heading = tree.css(".mdl-typography--title")
    product = one_line(heading[0].text()) if heading else "Google"
    first = links[0] if links else None
    title = one_line(first.text()) if first else _before_date(words)
    channel = (one_line(links[1].text()), links[1].attributes.get("href")) if links[1:] else None
    return _record(
        parse_page_date(words),
        product=product,
        title=or_none(title),
        url=or_none(first.attributes.get("href") if first else None),
        channel=channel or (None, None),
        position=position,
    )


def _before_date(words: str) -> str:
    found = _EN_DATE.search(words) or _EU_DATE.search(words)
    return words[: found.start()].strip() if found else words


def parse_page_date(words: str) -> str:
    """The date of an entry as the page writes it. Raises: BadRecord."""
    if found := _EN_DATE.search(words.replace("\u202f", " ")):
        month, day, year, hour, minute, second, half, zone = found.groups()
        hours = int(hour) % 12 + 12 * (half == "PM") if half else int(hour)
    elif found := _EU_DATE.search(words):
        day, month, year, hour, minute, second, zone = found.groups()
        hours = int(hour)
    else:
        raise BadRecord("bad_date", "its date is written in a way that is not known")
    try:
        moment = datetime(
            int(year), _month(month), int(day), hours, int(minute), int(second), tzinfo=_zone(zone)
        )
    except ValueError:
        raise BadRecord("bad_date", "its date does not exist") from None
    return rendered(moment)


def _month(name: str) -> int:
    if name.isdecimal():
        return int(name)
    short = {"mär": "mar", "mai": "may", "okt": "oct", "dez": "dec"}.get(name[:3].lower())
    return _MONTHS.index(short or name[:3].lower()) + 1


def _zone(name: str | None) -> timezone:
    if name is None or name in _HOURS:
        return timezone(timedelta(hours=_HOURS.get(name or "UTC", 0)))
    offset = re.fullmatch(r"(?:GMT)?([+-])(\d{1,2}):?(\d{2})?", name)
    if offset is None:
        return UTC
    sign, hours, minutes = offset.groups()
    length = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return timezone(-length if sign == "-" else length)
