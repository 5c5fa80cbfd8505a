"""What is measured: each read once per door, the same question each time.

Rule: the REST form and the tool form of a read ask for the same records, so that their difference
is the adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from bench.archive import COMMON_TERM, RARE_TERM, Words
from bench.clients import RestCaller, ToolCaller
from bench.filling import SEED

Query = tuple[tuple[str, str], ...]
ANEW = 400
# Of fewer letters no spelling is taken for another.
LONG_LETTERS = 5
_MEDIAN = {"metric": "median", "field": "size_bytes"}


@dataclass(frozen=True, slots=True)
class Read:
    """One read: its REST target and, where a tool does the same, the tool call.

    `fits` is false where the tool's answer passes its budget, so that it asks for a shorter page
    and thus reads twice.  Over REST, `turns` are asked one after the other in the place of `query`:
    so many that nothing found a moment ago answers them.
    """

    name: str
    path: str
    query: Query = ()
    tool: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])
    bound_ms: float | None = None
    fits: bool = True
    turns: tuple[Query, ...] = ()

    def over_rest(self, caller: RestCaller) -> Callable[[], object]:
        """The call as REST."""
        asked = cycle(self.turns or (self.query,))
        return lambda: caller.get(self.path, next(asked))

    def over_tool(self, caller: ToolCaller) -> Callable[[], object]:
        """The call as a tool; a search is asked with the words of the next turn."""
        tool = self.tool or ""
        asked = cycle(
            [{**self.arguments, "query": dict(turn)["q"]} for turn in self.turns]
            or [self.arguments]
        )
        return lambda: caller.call(tool, next(asked))


def reads_of(mailbox: str, rest: RestCaller) -> Sequence[Read]:
    """The reads of the table, on one mailbox; `rest` finds a deep cursor and a record."""
    records = "/v1/streams/messages/records"
    here: Query = (("connection_id", mailbox),)
    base = {"stream": "messages", "connection_id": mailbox}
    first = rest.get(records, (*here, ("limit", "100")))
    key = first["data"][50]["record_id"]
    sender = first["data"][3]["data"]["from_address"]
    deep = deep_cursor(rest, records, here)
    page: Query = (*here, ("limit", "100"))
    return (
        Read("page of 100", records, page, "query_records", {**base, "limit": 100}, 5, False),
        Read(
            "page of 25, two fields",
            records,
            (*here, ("limit", "25"), ("fields", "subject,sent_at")),
            "query_records",
            {**base, "limit": 25, "fields": ["subject", "sent_at"]},
        ),
        Read("page of 100, deep", records, (*page, ("cursor", deep)), bound_ms=5),
        Read("record", f"{records}/{key}", here, "fetch", {"id": f"{mailbox}/messages:{key}"}, 3),
        Read(
            "field window",
            f"{records}/{key}/field-window",
            (*here, ("field", "body")),
            "read_record_field",
            {"id": f"{mailbox}/messages:{key}", "field_path": "body"},
            3,
        ),
        Read(
            "filter on a declared field",
            records,
            (*here, ("filter[from_address]", sender), ("limit", "25")),
            "query_records",
            {**base, "filter": {"from_address": sender}, "limit": 25},
            5,
            False,
        ),
        Read(
            "count",
            records,
            (*here, ("limit", "1"), ("count", "exact")),
            "query_records",
            {**base, "limit": 1, "count": "exact"},
            10,
        ),
        _aggregate("month buckets", base, here, group_by_time="sent_at", granularity="month"),
        _aggregate("group by sender", base, here, group_by="from_address"),
        _aggregate(
            "sender and weekday",
            base,
            here,
            group_by="from_address",
            group_by_time="sent_at",
            granularity="weekday",
        ),
        _aggregate("median by sender", base, here, **_MEDIAN, group_by="from_address"),
        _search("search, rare term", RARE_TERM, 10),
        _search("search, common term", COMMON_TERM, 60),
        Read(
            "search, common terms in turn",
            "/v1/search",
            turns=tuple((("q", term), ("limit", "25")) for term in Words(SEED).commonest(6)),
            bound_ms=60,
        ),
        Read("schema", "/v1/schema", (("view", "compact"),), "schema", {}),
    )


def searches_anew() -> tuple[Read, ...]:
    """Searches with words drawn anew for each call, and words that are mistyped alike."""
    words = Words(SEED).commonest(ANEW)
    others = words[ANEW // 2 :] + words[: ANEW // 2]
    long = [word for word in words if len(word) >= LONG_LETTERS]
    asked = {
        "search, a word anew": words,
        "search, two words anew": [" ".join(both) for both in zip(words, others, strict=True)],
        "search, a long word anew": long,
        "search, a typo anew": [f"{word[:2]}{word[3]}{word[2]}{word[4:]}" for word in long],
    }
    return tuple(
        Read(
            name,
            "/v1/search",
            tool="search",
            arguments={"limit": 25},
            fits=False,
            turns=tuple((("q", text), ("limit", "25")) for text in texts),
        )
        for name, texts in asked.items()
    )


def change_feed(mailbox: str) -> Read:
    """The first hundred changes of a mailbox, as whoever begins to follow it asks for them."""
    since = {"changes_since": "beginning", "limit": "100"}
    return Read(
        "change feed",
        "/v1/streams/messages/records",
        (("connection_id", mailbox), *since.items()),
        "query_records",
        {
            "stream": "messages",
            "connection_id": mailbox,
            "changes_since": "beginning",
            "limit": 100,
        },
    )


def fan_in(chat: str) -> tuple[Read, Read]:
    """A page of one chat, and the same page over all chats of the source."""
    records = "/v1/streams/messages/records"
    one: Query = (("connection_id", chat), ("limit", "100"))
    return (
        Read("one connection", records, one),
        Read("all connections", records, (("limit", "100"),)),
    )


def deep_cursor(rest: RestCaller, path: str, here: Query) -> str:
    """The cursor behind page twenty-five, or the last one there is."""
    cursor = ""
    for _ in range(25):
        after = (("cursor", cursor),) if cursor else ()
        page = rest.get(path, (*here, ("limit", "100"), *after))
        if not page["has_more"]:
            break
        cursor = page["next_cursor"]
    return cursor


def _aggregate(name: str, base: Mapping[str, Any], here: Query, **grouping: str) -> Read:
    figures = {"metric": "count", **grouping}
    query = (*here, ("limit", "100"), *figures.items())
    arguments = {**base, "limit": 100, **figures}
    return Read(name, "/v1/streams/messages/aggregate", query, "aggregate", arguments)


def _search(name: str, term: str, bound_ms: float) -> Read:
    arguments = {"query": term, "limit": 25}
    return Read(
        name, "/v1/search", (("q", term), ("limit", "25")), "search", arguments, bound_ms, False
    )
