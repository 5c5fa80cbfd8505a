"""Short ways to ask a store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pdpp_kernel.criteria import Term, WordQuery
from pdpp_kernel.record import TombstoneRow
from personal_server.enforcement.plans import ChangesPlan, SearchPlan
from personal_server.enforcement.rows import Feed
from personal_server.enforcement.scopes import Scope
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.storage.worlds import scope

A = scope("cin_a")
BOTH = (A, scope("cin_b"))


def feed(
    store: RecordStore, since: int | None, *scopes: Scope, after: int = 0, limit: int = 100
) -> Feed:
    with store.snapshot() as snapshot:
        plan = ChangesPlan(scopes or BOTH, since, snapshot.horizon, after, limit)
        return snapshot.changes(plan)


def told(found: Feed) -> list[tuple[str, bool]]:
    return [(item.item.key, isinstance(item.item, TombstoneRow)) for item in found.items]


def horizon(store: RecordStore) -> int:
    with store.snapshot() as snapshot:
        return snapshot.horizon


def search(store: RecordStore, *terms: str, scopes: tuple[Scope, ...] = BOTH, **more: Any) -> Any:
    """`rain*` is a prefix, `rain~` means other forms too, `rain|snow` either, `-rain` neither."""
    conditions, least = more.pop("conditions", ()), more.pop("least", None)
    asked = {(each.connection_id, each.stream.name): conditions for each in scopes}
    wanted = tuple(_term(text) for text in terms if text[0] != "-")
    excluded = tuple(_term(text[1:]) for text in terms if text[0] == "-")
    with store.snapshot() as snapshot:
        words = WordQuery(wanted, excluded, least)
        return snapshot.search(SearchPlan(scopes, words, asked, **more))


def count_terms(
    store: RecordStore, *terms: str, scopes: tuple[Scope, ...], limit: int
) -> tuple[int, ...] | None:
    plan = SearchPlan(scopes, WordQuery(tuple(map(_term, terms))), frequency_limit=limit)
    with store.snapshot() as snapshot:
        return snapshot.count_terms(plan)


def _term(text: str) -> Term:
    first, *others = (
        Term(
            tuple(each.strip('"*~').split()),
            each.endswith("*"),
            each.endswith("~"),
            quoted=each[0] == '"',
        )
        for each in text.split("|")
    )
    return replace(first, others=tuple(others))


def receive(store: RecordStore, content: bytes, connection_id: str = "cin_a", now: int = 1) -> str:
    upload, _ = store.receive_blob(connection_id, [content[:2], content[2:]], "text/plain", now, 99)
    return upload.blob_id


def content_of(store: RecordStore, blob_id: str) -> bytes | None:
    file = store.open_blob(blob_id)
    if file is None:
        return None
    with file:
        return file.read()
