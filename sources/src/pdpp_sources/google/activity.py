"""What somebody did in Google's products: as JSON, or as the page of HTML that is the default."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import tzinfo
from functools import partial
from itertools import islice
from urllib.parse import parse_qs, urlsplit

from selectolax.lexbor import LexborHTMLParser

from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord, stable_id
from pdpp_sources.common import json_values
from pdpp_sources.common.errors import BadRecord, MemberDamaged
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.html_text import html_to_text
from pdpp_sources.common.json_stream import Element
from pdpp_sources.common.page_pieces import page_pieces
from pdpp_sources.common.source import one_record
from pdpp_sources.common.text import decoded, one_line, or_none

LONGEST_STYLE_BYTES = 1024 * 1024
_CELL = b'<div class="outer-cell'
_MARK = re.compile(_CELL)
_WATCHED = ("Watched ", "Hai guardato ", "Has visto ", "Vous avez regardé ", "Assistiu a ", "Viu ")


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
    for offset, cell in islice(page_pieces(member, _MARK), 1, None):
        position = member.offset + offset
        build = partial(_cell_items, cell, position, zone)
        yield from one_record(member.where(offset), position, build)


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
    # its library takes half a second to load, and most exports are JSON
    from pdpp_sources.common.page_dates import parse_page_date  # noqa: PLC0415

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
