"""One search over everything that a viewpoint shows.

Source: docs/contract/authorization-server.md 13.5; docs/contract/resource-server.md 11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, cast
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from pdpp_kernel.criteria import HitOrder
from pdpp_kernel.errors import InvalidRequest, NotFound, QueryTimeout
from pdpp_kernel.texts import Joined, Text, message, moment_of
from pdpp_kernel.values import ValueKind
from personal_server.console.account_cards import stored_counts
from personal_server.console.pages import Templates
from personal_server.console.record_values import CELL_CHARS, SHORT_CHARS, brief, plain_records
from personal_server.console.record_view import MOST_LINK_BYTES, RecordsView
from personal_server.console.search_chips import Order, chips_of, found_places
from personal_server.console.session import PageRequest, PageRoute
from personal_server.console.viewpoints import (
    ROOTS,
    Viewpoint,
    Viewpoints,
    account_name,
    records_path,
)
from personal_server.console.words import cut, declared_name, said
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.enforcement.queries import PageSize, SearchQuery, Selectors
from personal_server.reading.search import search

HITS_SHOWN = 20
NARROWING = ("account", "stream", "since", "until")
KEPT = ("q", *NARROWING, "sort")
PAGE_CHARS = 200_000
PAGE_SECONDS = 10.0
WORDS_SHOWN = 5
CHIP_CHARS, NAMES_SHOWN = 40, 3
# What a search has left to look at, in its `recall`.
_LEFT = ("truncated", "pending_index_count", "unembedded_record_count")


class Hit(msgspec.Struct, frozen=True):
    """A record that was found; `excerpt` is its text in pieces, each with whether it matches.

    Shapes: `title` is empty where the excerpt says the same; `where` is account and kind.
    """

    link: str
    title: str
    where: tuple[Text, Text]
    at: Text
    author: str
    excerpt: tuple[tuple[str, bool], ...]
    alike: int


class SearchPages(msgspec.Struct, frozen=True):
    """`/owner/search`, and that of every other viewpoint."""

    viewpoints: Viewpoints
    pages: Templates

    def routes(self) -> tuple[PageRoute, ...]:
        """The route of this page: path, methods, and who may open it."""
        parameters = frozenset({*KEPT, "cursor"})
        return tuple(PageRoute("GET", f"{root}/search", self.show, parameters) for root in ROOTS)

    def show(self, visit: PageRequest) -> Response:
        """The form, and what was found.  Raises: InvalidRequest, InvalidCursor, CursorExpired."""
        asked = visit.query
        query_kept = {name: asked[name] for name in KEPT if asked.get(name)}
        if len(urlencode(query_kept)) > 2 * MOST_LINK_BYTES:
            raise InvalidRequest("This search is too long. Use fewer words.", param="q")
        viewpoint = self.viewpoints.of(visit)
        path = f"{viewpoint.root}/search"
        with viewpoint.reads.open(PAGE_SECONDS) as (snapshot, authority):
            stored = stored_counts(snapshot)
            filled = frozenset(key for key, count in stored.items() if count)
            streams = _streams(authority, filled)
            if asked.get("stream") and asked["stream"] not in dict(streams):
                raise InvalidRequest("There are no such records on this server.", param="stream")
            names = {source.order: source for source in authority.sources}
            accounts = {
                source.connection_id: cut(account_name(source), CHIP_CHARS)
                for source in authority.sources
            }
            if asked.get("account") and asked["account"] not in accounts:
                raise NotFound("There is no such account.")
            result: dict[str, Any] = {}
            shown: list[tuple[str, str]] = []
            if asked.get("q"):
                query = _query(asked)
                try:
                    answer = search(viewpoint.reads.ports, snapshot, authority, query)
                except QueryTimeout:
                    result = {
                        "problem": message(
                            "The search took too long. Choose one kind of records, or a range of"
                            " dates."
                        )
                    }
                except InvalidRequest as error:
                    result = {"problem": error.text}
                else:
                    more = answer.next_cursor
                    hits = plain_records(answer.data)
                    count = answer.count
                    shown = [(hit["connection_id"], hit["stream"]) for hit in hits]
                    result = {
                        "hits": [_hit(viewpoint.root, hit, names) for hit in hits],
                        "count": None if count is None else count.value,
                        "next": f"{path}?{urlencode({**query_kept, 'cursor': more})}"
                        if more
                        else None,
                        "told": _told(
                            path,
                            msgspec.to_builtins(answer.meta),
                            query_kept,
                            is_lost=any(w.code == "source_unavailable" for w in answer.warnings),
                        ),
                    }
        if "hits" in result:
            places = found_places(
                viewpoint.reads,
                query_kept,
                shown,
                filled,
                result["count"],
                is_least=bool(result["told"]["incomplete"]),
            )
            kinds, today = dict(streams), self._today(viewpoint)
            result["chips"] = chips_of(path, query_kept, places, accounts, kinds, today)
            result["is_of_page"] = not places.is_all
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
            "count": None,
            "chips": [],
            "is_of_page": False,
            "account": asked.get("account", ""),
            "next": None,
            "again": f"{path}?{urlencode(query_kept)}",
            "told": {},
            **result,
        }
        return self.pages.show(visit, "search.html", values)

    def _today(self, viewpoint: Viewpoint) -> date:
        now = moment_of(viewpoint.reads.ports.clock())
        return now.astimezone(self.pages.zone).date()


def _streams(authority: ReadAuthority, filled: frozenset[Order]) -> list[tuple[str, Text]]:
    """Streams that hold records, each by what its sources call it: several may share a stream."""
    labels: dict[str, set[str]] = {}
    for source in authority.sources:
        if source.order in filled:
            labels.setdefault(source.stream, set()).add(source.declared.label)
    kinds: list[tuple[str, Text]] = []
    for stream, names in labels.items():
        shown = [declared_name(cut(each, CHIP_CHARS)) for each in sorted(names)]
        more = ["…"] if len(shown) > NAMES_SHOWN else []
        kinds.append((stream, Joined((*shown[:NAMES_SHOWN], *more))))
    return sorted(kinds, key=lambda kind: str(kind[1]).lower())


def _query(parameters: Mapping[str, str]) -> SearchQuery:
    times = RecordsView("", "", since=parameters.get("since"), until=parameters.get("until")).times
    sort = parameters.get("sort", HitOrder.RELEVANCE.value)
    if sort not in list(HitOrder):
        raise InvalidRequest("Search results cannot be sorted in that order.", param="sort")
    return SearchQuery(
        parameters["q"],
        Selectors(parameters.get("account") or None),
        streams=(parameters["stream"],) if parameters.get("stream") else (),
        times=times,
        limit=HITS_SHOWN,
        size=PageSize(chars=PAGE_CHARS),
        cursor=parameters.get("cursor"),
        sort=HitOrder(sort),
    )


def _hit(
    root: str, hit: Mapping[str, Any], sources: Mapping[tuple[str, str], ReadableSource]
) -> Hit:
    excerpt = hit["evidence_excerpts"][0]
    at = hit.get("authored_at")
    kind = ValueKind.DATE if at and len(at) == len("2026-01-31") else ValueKind.INSTANT
    key = hit["record_id"]
    stream_key = (hit["connection_id"], hit["stream"])
    source = sources[stream_key]
    title, text = cut(hit.get("title") or "", SHORT_CHARS), excerpt["preview_text"]
    is_title = excerpt["field_path"] == source.declared.title_field
    says_the_same = is_title or not title or title == cut(text, SHORT_CHARS)
    return Hit(
        link=records_path(root, *stream_key, key),
        title="" if says_the_same else title,
        where=(account_name(source), declared_name(source.declared.label)),
        at=brief(at, kind) if at else "",
        author=cut(hit.get("author") or "", CELL_CHARS),
        excerpt=pieces(text, excerpt["start_chars"], excerpt["match_ranges"]),
        alike=hit.get("duplicates") or 0,
    )


def pieces(text: str, begin: int, ranges: Sequence[Sequence[int]]) -> tuple[tuple[str, bool], ...]:
    """A text in pieces, each with whether it matches.  Units: ranges count as `begin` does."""
    stretches: list[tuple[str, bool]] = []
    at = 0
    for start, end in sorted((low - begin, high - begin) for low, high in ranges):
        if start < at or end > len(text):
            continue
        stretches += [(text[at:start], False), (text[start:end], True)]
        at = end
    stretches.append((text[at:], False))
    return tuple((said(text, len(text)), matches) for text, matches in stretches if text)


def _told(
    path: str, meta: object, query_kept: Mapping[str, str], *, is_lost: bool
) -> dict[str, object]:
    """What is said of the search as a whole: how it was widened, near words, what was left out."""
    said_of = cast("dict[str, Any]", meta)
    relaxed: dict[str, Any] = said_of.get("relaxed") or {}
    recall: dict[str, Any] = said_of.get("recall") or {}
    is_least = said_of.get("count_accuracy") == "lower_bound"
    near = [
        (cut(word["value"], CELL_CHARS), f"{path}?{urlencode({**query_kept, 'q': word['value']})}")
        for word in said_of.get("near", ())[:WORDS_SHOWN]
        if len(word["value"]) <= CELL_CHARS
    ]
    return {
        "widened": bool(relaxed),
        "absent": [cut(str(word), CELL_CHARS) for word in relaxed.get("absent") or ()][
            :WORDS_SHOWN
        ],
        "near": near,
        "ignored": [cut(word, CELL_CHARS) for word in said_of.get("ignored_words", ())][
            :WORDS_SHOWN
        ],
        "incomplete": is_least,
        # by meaning there may always be more, and a search that looked everywhere has not stopped
        "stopped": is_lost or any(map(recall.get, _LEFT)) or (is_least and "mode" not in recall),
        "narrowed": not query_kept.keys().isdisjoint(NARROWING),
    }
