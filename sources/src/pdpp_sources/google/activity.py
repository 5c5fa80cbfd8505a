"""What somebody did in Google's products: as JSON, or as the page of HTML that is the default."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache, partial
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

from dateparser.date import DateDataParser
from dateparser.timezone_parser import pop_tz_offset_from_string
from selectolax.lexbor import LexborHTMLParser

from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord, stable_id
from pdpp_sources.common import json_values
from pdpp_sources.common.errors import BadRecord, MemberDamaged
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.html_text import html_to_text
from pdpp_sources.common.json_stream import Element
from pdpp_sources.common.source import one_record
from pdpp_sources.common.text import decoded, one_line, or_none
from pdpp_sources.common.times import rendered

CHUNK_BYTES = 1024 * 1024
LONGEST_STYLE_BYTES = 1024 * 1024
LARGEST_CELL_BYTES = 4 * 1024 * 1024
LONGEST_DATE_CHARS = 100
_CELL = b'<div class="outer-cell'
_WATCHED = ("Watched ", "Hai guardato ", "Has visto ", "Vous avez regardé ", "Assistiu a ", "Viu ")
_CLOCK = re.compile(r"\b(\d{1,2}):(\d{2}):(\d{2})(?:\s?([ap])\.?\s?m\b\.?)?", re.IGNORECASE)
# Days before months where both are numbers: who puts the month first writes its name here.
_PARSER = DateDataParser(
    settings={
        "DATE_ORDER": "DMY",
        "PREFER_LOCALE_DATE_ORDER": False,
        "RETURN_AS_TIMEZONE_AWARE": True,
        "STRICT_PARSING": True,
        "TIMEZONE": "UTC",
    }
)


_LETTERS = re.compile(r"\s([A-Z]{2,4})\s*$")
_SCRIPTS = {
    "hebrew": re.compile("[\u0590-\u05ff]"),
    "arabic": re.compile("[\u0600-\u06ff]"),
    "indian": re.compile("[\u0900-\u0dff]"),
    "chinese": re.compile("[\u4e00-\u9fff]"),
    "armenian": re.compile("[\u0530-\u058f]"),
}
# Letters that stand for several zones, by the script of the page; without a hint the most people's.
_DOUBLE_MEANINGS = {
    "IST": {"": "Asia/Kolkata", "hebrew": "Asia/Jerusalem", "irish": "Europe/Dublin"},
    "CST": {"": "America/Chicago", "chinese": "Asia/Shanghai", "cuban": "America/Havana"},
    "BST": {"": "Europe/London", "indian": "Asia/Dhaka"},
    "AST": {"": "America/Halifax", "arabic": "Asia/Riyadh"},
    "GST": {"": "Asia/Dubai", "southern": "Atlantic/South_Georgia"},
    "PST": {"": "America/Los_Angeles", "philippine": "Asia/Manila"},
    "AMT": {"": "America/Manaus", "armenian": "Asia/Yerevan"},
    "ADT": {"": "America/Halifax", "arabic": "Asia/Baghdad"},
    "WST": {"": "Australia/Perth", "samoan": "Pacific/Apia"},
}


def activity_records(element: Element) -> Iterator[SourceItem]:
    """One entry of an activity list. Raises: BadRecord."""
    value = element.value
    occurred_at = json_values.instant(value, "time")
    if occurred_at is None:
        raise BadRecord("bad_date", "the time of the entry cannot be read")
    channel = (json_values.objects(value, "subtitles") or [Data()])[0]
    products = json_values.strings(value, "products")
    details = json_values.objects(value, "details")
    pages = (json_values.text(item, "html") for item in json_values.objects(value, "safeHtmlItem"))
    answers = [html_to_text(page or "") for page in pages]
    yield _record(
        occurred_at,
        product=(products or [json_values.line(value, "header") or "Google"])[0],
        title=json_values.line(value, "title"),
        url=json_values.line(value, "titleUrl"),
        channel=(json_values.line(channel, "name"), json_values.line(channel, "url")),
        answer=or_none("\n\n".join(filter(None, answers))),
        details=list(filter(None, (json_values.line(detail, "name") for detail in details))),
        position=element.position,
    )


def is_page(member: ExportMember) -> bool:
    """Whether cells of activity follow the style sheet, which is long."""
    try:
        return _CELL in member.head(LONGEST_STYLE_BYTES)
    except MemberDamaged:
        return False


def read_activity_page(member: ExportMember, zone: tzinfo) -> Iterator[SourceItem]:
    """The entries of an HTML page, cut at their cells while it streams by."""
    for offset, cell in _cells(member):
        position = member.offset + offset
        build = partial(_cell_items, cell, position, zone)
        yield from one_record(member.where(offset), position, build)


def _cells(member: ExportMember) -> Iterator[tuple[int, bytes]]:
    buffer, offset, started = b"", 0, False
    with member.open() as stream:
        while chunk := stream.read(CHUNK_BYTES):
            buffer += chunk
            while (position := buffer.find(_CELL, 1 if started else 0)) >= 0:
                if started:
                    yield offset, buffer[:position]
                buffer, offset, started = buffer[position:], offset + position, True
            if len(buffer) > LARGEST_CELL_BYTES:
                raise BadRecord("too_large", "an entry is too large; the rest was not read")
    if started:
        yield offset, buffer


def _cell_items(cell: bytes, position: int, zone: tzinfo) -> Iterator[SourceItem]:
    tree = LexborHTMLParser(decoded(cell))
    bodies = tree.css(".content-cell")
    if not bodies:
        yield Skipped("activity page", "bad_record", "the entry has no content", position)
        return
    links = bodies[0].css("a")
    lines = [one_line(line) for line in bodies[0].text(separator="\n").split("\n")]
    at, occurred_at = _dated(lines, zone)
    heading = tree.css(".mdl-typography--title")
    product = one_line(heading[0].text()) if heading else "Google"
    first = links[0] if links else None
    title = one_line(first.text()) if first else one_line(" ".join(lines[:at]))
    channel = (one_line(links[1].text()), links[1].attributes.get("href")) if links[1:] else None
    yield _record(
        occurred_at,
        product=product,
        title=or_none(title),
        url=or_none(first.attributes.get("href") if first else None),
        channel=channel or (None, None),
        details=_details(tree, product),
        answer=or_none("\n".join(lines[at + 1 :]).strip()),
        position=position,
    )


def _dated(lines: list[str], zone: tzinfo) -> tuple[int, str]:
    """The line that is the date, and what it says. Raises: BadRecord."""
    for at, line in enumerate(lines):
        with suppress(BadRecord):
            return at, parse_page_date(line, zone)
    raise BadRecord("bad_date", "the entry has no readable date")


def _details(tree: LexborHTMLParser, product: str) -> list[str]:
    """What stands in small print beside the product; a part with links is Google's own reason."""
    details: list[str] = []
    for small in tree.css(".mdl-typography--caption"):
        for part in (small.html or "").split("<b>")[2:]:
            if "<a" not in part:
                body = LexborHTMLParser(part.partition("</b>")[2]).body
                words = body.text(separator="\n") if body else ""
                details += filter(None, (one_line(line) for line in words.split("\n")))
    return [detail for detail in dict.fromkeys(details) if detail != product]


def _record(
    occurred_at: str,
    *,
    product: str,
    title: str | None,
    url: str | None,
    channel: tuple[str | None, str | None],
    details: list[str],
    answer: str | None,
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
        "details": details,
    }
    if youtube and address.path == "/results" and searched:
        return SourceRecord("youtube_searches", data | {"query": one_line(searched[0])}, position)
    if youtube and (address.path == "/watch" or address.path.startswith("/shorts/")):
        name, link = channel
        watched = {"title": _without_verb(title, url), "channel": name, "channel_url": link}
        return SourceRecord("youtube_watches", data | watched, position)
    facts = {
        "product": product,
        "answer": answer,
        "query": one_line(searched[0]) if searched else None,
    }
    return SourceRecord("activity", data | facts, position)


def _without_verb(title: str | None, url: str | None) -> str | None:
    """The video's own title; Google puts "Watched" before it, in the account's language."""
    if title is None or (url and title.endswith(url)):
        return url
    for verb in _WATCHED:
        if title.startswith(verb):
            return title.removeprefix(verb)
    return title.removesuffix(" angesehen").removesuffix(" bekeken")


def parse_page_date(words: str, zone: tzinfo = UTC) -> str:
    """A date as a page for people writes it, in any language, with a time and mostly a zone.

    `zone` is the owner's: a time without a zone was written there, and of several zones with the
    same letters it is meant.

    Raises: BadRecord.
    """
    clock = _CLOCK.search(words)
    if clock is None or len(words) > LONGEST_DATE_CHARS:
        raise _unknown()
    midnight = _moment(f"{words[: clock.start()]}00:00:00{words[clock.end() :]}", zone)
    if midnight is None:
        whole = _moment(words, zone)
        if whole is None:
            raise _unknown()
        return rendered(whole)
    hour, minute, second, half = clock.groups()
    hours = int(hour) % 12 + 12 * (half in "pP") if half else int(hour)
    if hours > 23 or int(minute) > 59 or int(second) > 59:
        raise _unknown()
    return rendered(midnight + timedelta(hours=hours, minutes=int(minute), seconds=int(second)))


@lru_cache(maxsize=4096)
def _moment(words: str, zone: tzinfo) -> datetime | None:
    """What words say; asked for the beginning of a day, since a page has many entries of each."""
    letters = _LETTERS.search(words)
    if letters is not None and letters.group(1) in _DOUBLE_MEANINGS:
        day = _PARSER.get_date_data(words[: letters.start()]).date_obj
        return day.replace(tzinfo=_meant(letters.group(1), words, day, zone)) if day else None
    clock, zone_name = pop_tz_offset_from_string(words)
    date = _PARSER.get_date_data(words).date_obj
    if date is None or zone_name is None:
        date = _PARSER.get_date_data(clock).date_obj
        return date.replace(tzinfo=zone_name or zone) if date else None
    return date


def _meant(letters: str, words: str, day: datetime, zone: tzinfo) -> tzinfo:
    """The zone that letters stand for: the owner's if it has them, else that of the language."""
    meanings = _DOUBLE_MEANINGS[letters]
    noon = day.replace(tzinfo=None, hour=12)
    if letters in (noon.replace(tzinfo=zone).tzname(), *_alike(zone)):
        return zone
    script = next((name for name, pattern in _SCRIPTS.items() if pattern.search(words)), "")
    return ZoneInfo(meanings.get(script, meanings[""]))


def _alike(zone: tzinfo) -> Iterator[str]:
    """The letters whose meanings name that zone, whatever a database calls it by."""
    key = getattr(zone, "key", None)
    for letters, meanings in _DOUBLE_MEANINGS.items():
        if key in meanings.values():
            yield letters


def _unknown() -> BadRecord:
    return BadRecord("bad_date", "the date of the entry is written in an unknown way")
