"""One search over everything that a viewpoint shows.

Source: docs/contract/authorization-server.md 13.5; docs/contract/resource-server.md 11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from pdpp_kernel.criteria import HitOrder
from pdpp_kernel.errors import InvalidRequest, QueryTimeout
from pdpp_kernel.texts import Text, message
from pdpp_kernel.values import ValueKind
from personal_server.console.pages import Templates
from personal_server.console.record_values import CELL_CHARS, SHORT_CHARS, brief
from personal_server.console.record_view import MOST_LINK_BYTES, RecordsView
from personal_server.console.session import PageRequest, PageRoute
from personal_server.console.viewpoints import ROOTS, Viewpoints, records_path
from personal_server.console.words import cut, said
from personal_server.domain.authority import ReadAuthority
from personal_server.enforcement.queries import PageSize, SearchQuery
from personal_server.reading.search import search

HITS_SHOWN = 20
PAGE_CHARS = 200_000
PAGE_SECONDS = 10.0
WORDS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that was found; `excerpt` is its text in pieces, each with whether it matches."""

    link: str
    title: str
    where: str
    at: Text
    author: str
    excerpt: tuple[tuple[str, bool], ...]
    alike: int


@dataclass(frozen=True, slots=True)
class SearchPages:
    """`/owner/search`, and that of every other viewpoint."""

    viewpoints: Viewpoints
    pages: Templates

    def routes(self) -> tuple[PageRoute, ...]:
        """Where it stands."""
        asked = frozenset({"q", "stream", "since", "until", "sort", "cursor"})
        return tuple(PageRoute("GET", f"{root}/search", self.show, asked) for root in ROOTS)

    def show(self, visit: PageRequest) -> Response:
        """The form, and what was found.  Raises: InvalidRequest, InvalidCursor, CursorExpired."""
        asked = visit.query
        kept = {
            name: asked[name]
            for name in ("q", "stream", "since", "until", "sort")
            if asked.get(name)
        }
        if len(urlencode(kept)) > 2 * MOST_LINK_BYTES:
            raise InvalidRequest("This search is too long. Use fewer words.", param="q")
        viewpoint = self.viewpoints.of(visit)
        place = f"{viewpoint.root}/search"
        with viewpoint.reads.open(PAGE_SECONDS) as (snapshot, authority):
            held = {each.stream for each in snapshot.stored_streams() if each.record_count}
            streams = _streams(authority, held)
            if asked.get("stream") and asked["stream"] not in dict(streams):
                raise InvalidRequest("There are no such records on this server.", param="stream")
            found: Mapping[str, Any] = {}
            if asked.get("q"):
                query = _query(asked)
                try:
                    answer = search(viewpoint.reads.ports, snapshot, authority, query)
                except QueryTimeout:
                    found = {
                        "problem": message(
                            "The search took too long. Choose one kind of records, or a range of"
                            " dates."
                        )
                    }
                except InvalidRequest as error:
                    found = {"problem": error.text}
                else:
                    more = answer.next_cursor
                    found = {
                        "hits": _hits(viewpoint.root, answer.data),
                        "next": f"{place}?{urlencode({**kept, 'cursor': more})}" if more else None,
                        "told": _told(place, msgspec.to_builtins(answer.meta), kept),
                    }
        values: dict[str, object] = {
            "viewpoint": viewpoint,
            "q": asked.get("q", ""),
            "since": asked.get("since", ""),
            "until": asked.get("until", ""),
            "stream": asked.get("stream", ""),
            "sort": asked.get("sort", ""),
            "streams": streams,
            "begins": not asked.get("cursor"),
            "holds_records": bool(streams),
            "problem": None,
            "hits": None,
            "next": None,
            "told": {},
            **found,
        }
        return self.pages.show(visit, "search.html", values)


def _streams(authority: ReadAuthority, held: set[str]) -> list[tuple[str, str]]:
    named = {each.stream: each.declared.label for each in authority.sources if each.stream in held}
    return sorted(named.items(), key=lambda pair: pair[1].lower())


def _query(asked: Mapping[str, str]) -> SearchQuery:
    times = RecordsView("", "", since=asked.get("since"), until=asked.get("until")).times
    sort = asked.get("sort", HitOrder.RELEVANCE.value)
    if sort not in list(HitOrder):
        raise InvalidRequest("Search results cannot be sorted in that order.", param="sort")
    return SearchQuery(
        asked["q"],
        streams=(asked["stream"],) if asked.get("stream") else (),
        times=times,
        limit=HITS_SHOWN,
        size=PageSize(chars=PAGE_CHARS),
        cursor=asked.get("cursor"),
        sort=HitOrder(sort),
    )


def _hits(root: str, disclosed: object) -> list[Hit]:
    found: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(disclosed))
    return [_hit(root, each) for each in found]


def _hit(root: str, found: Mapping[str, Any]) -> Hit:
    excerpt = found["evidence_excerpts"][0]
    at = found.get("authored_at")
    kind = ValueKind.DATE if at and len(at) == len("2026-01-31") else ValueKind.INSTANT
    key = found["record_key"]
    place = (found["connection_id"], found["stream"])
    account = found.get("display_name") or found["connector_key"]
    return Hit(
        link=records_path(root, *place, key),
        title=cut(found.get("title") or "", SHORT_CHARS) or cut(key, CELL_CHARS),
        where=f"{cut(account, CELL_CHARS)} · {cut(found['stream'], CELL_CHARS)}",
        at=brief(at, kind) if at else "",
        author=cut(found.get("author") or "", CELL_CHARS),
        excerpt=pieces(excerpt["preview_text"], excerpt["start_chars"], excerpt["match_ranges"]),
        alike=found.get("duplicates") or 0,
    )


def pieces(text: str, begin: int, ranges: Sequence[Sequence[int]]) -> tuple[tuple[str, bool], ...]:
    """A text in pieces, each with whether it matches.  Units: ranges count as `begin` does."""
    found: list[tuple[str, bool]] = []
    at = 0
    for start, end in sorted((low - begin, high - begin) for low, high in ranges):
        if start < at or end > len(text):
            continue
        found += [(text[at:start], False), (text[start:end], True)]
        at = end
    found.append((text[at:], False))
    return tuple((said(each, len(each)), matches) for each, matches in found if each)


def _told(place: str, meta: object, kept: Mapping[str, str]) -> dict[str, object]:
    """What is said of the search as a whole: how it was widened, near words, what was left out."""
    said_of = cast("dict[str, Any]", meta)
    relaxed: dict[str, Any] = said_of.get("relaxed") or {}
    near = [
        (cut(each["value"], CELL_CHARS), f"{place}?{urlencode({**kept, 'q': each['value']})}")
        for each in said_of.get("near", ())[:WORDS_SHOWN]
        if len(each["value"]) <= CELL_CHARS
    ]
    return {
        "widened": bool(relaxed),
        "absent": [cut(str(each), CELL_CHARS) for each in relaxed.get("absent") or ()][
            :WORDS_SHOWN
        ],
        "near": near,
        "ignored": [cut(each, CELL_CHARS) for each in said_of.get("ignored_words", ())][
            :WORDS_SHOWN
        ],
        "incomplete": said_of.get("count_accuracy") == "lower_bound",
        "narrowed": len(kept) > 1,
    }
