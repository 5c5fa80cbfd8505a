"""What a question means that names who wrote: its names are no part of that."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import orjson
import pytest

from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.domain.declaration_document import parse_declaration
from personal_server.semantics.index import PassageIndex
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.resource_server.door import Door, Reply
from server.tests.resource_server.journal import (
    CONNECTIONS,
    DIARY,
    JOURNAL_RAW,
    client,
    stream_grant,
    write,
)
from server.tests.semantics.tiny import TinyEmbedder
from tests.oracle.memory import MemoryStore
from tests.properties.stores import open_store


class Recording(TinyEmbedder):
    """Keeps the texts of questions that it is asked to embed, and answers the first `most`."""

    def __init__(self, most: int = 2) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._most = most

    def embed_query(self, text: str) -> bytes | None:
        self.texts.append(text)
        return super().embed_query(text) if len(self.texts) <= self._most else None


def letters() -> SourceDeclaration:
    """The diary, the titles of its entries declared as who wrote them."""
    raw = copy.deepcopy(JOURNAL_RAW)
    [entries] = [each for each in raw["streams"] if each["name"] == "entries"]
    entries["schema"]["properties"]["title"]["x_pdpp_role"] = "author"
    return parse_declaration(raw)


WRITTEN_BY = letters()


def letter(key: str, author: str, body: str, month: int = 1) -> dict[str, Any]:
    at = f"2026-{month:02}-01T10:00:00Z"
    return {"id": key, "title": author, "body": body, "created_at": at}


LETTERS = [
    letter("a1", "Ada", "Eight years of dog walks."),
    letter("a2", "Ada", "Rain again."),
    letter("b1", "Ben", "Ada, was it the violin?"),
    letter("s1", "Violin Shop", "The violin is ready.", 3),
    letter("s2", "Ben", "A violin case."),
]


def door(store: RecordStore, embedder: TinyEmbedder) -> Door:
    store.put_declaration(WRITTEN_BY, orjson.dumps(WRITTEN_BY.raw), 1)
    store.add_connection(CONNECTIONS[0])
    write(store, DIARY, "entries", LETTERS, declared=WRITTEN_BY)
    index = PassageIndex(store, KnownDeclarations(), TinyEmbedder, sleep=lambda _: None)
    for _ in range(4):
        index()
    return Door(store, embedder=embedder)


def ask(at: Door, query: str, mode: str = "hybrid", **limits: Any) -> Reply:
    grant = stream_grant(instance_ids=(DIARY,), **limits)
    return at.get(f"/v1/search?q={query}&mode={mode}", client(grant, declared=WRITTEN_BY))


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("Which violin was Ada's puppy?", "Which violin was puppy?"),
        ("which violin did ada sell Ben", "which violin did sell"),
        ("shop violin zebra", "violin zebra"),  # a violin is mostly what letters are about
        ("zebra violin puppy", None),
        ("Ada", None),  # nothing would be left
        ("Ada rain", "rain"),  # where one holds both words none is left out
        ('zebra "Ada" puppy', None),  # meant as it is
        ("zebra from:Ada puppy", None),
    ],
)
def test_the_names_of_those_who_wrote_are_not_embedded(
    kind: str, asked: str, meant: str | None, tmp_path: Path
) -> None:
    with open_store(kind, tmp_path) as store:
        embedder = Recording()
        ask(door(store, embedder), asked.replace(" ", "%20").replace('"', "%22"))
        assert embedder.texts[1:] == ([] if meant is None else [meant])


def test_what_is_near_without_the_name_is_found() -> None:
    at = door(MemoryStore(), Recording())
    assert ask(at, "Ada%20puppy%20zebra").keys[0] == "a1"
    assert ask(at, "Ada%20puppy%20zebra", mode="words").keys != ["a1"]


def test_a_name_that_is_hidden_is_a_word() -> None:
    hidden: list[dict[str, Any]] = [
        {"since": "2026-02-01T00:00:00Z"},
        {"fields": ("id", "body", "created_at")},
    ]
    for limits in hidden:
        embedder = Recording()
        ask(door(MemoryStore(), embedder), "Ada%20violin%20zebra", **limits)
        assert len(embedder.texts) == 1


def test_where_a_model_answers_once_only_it_is_what_was_meant_at_first() -> None:
    embedder = Recording(most=1)
    reply = ask(door(MemoryStore(), embedder), "Ada%20puppy%20zebra")
    assert (reply.status, len(embedder.texts)) == (200, 2)
    assert reply.body["meta"]["recall"]["mode"] == "hybrid"


def test_by_words_and_by_meaning_alone_nothing_is_left_out() -> None:
    embedder = Recording()
    at = door(MemoryStore(), embedder)
    ask(at, "Ada%20puppy%20zebra", mode="words")
    assert embedder.texts == []
    ask(at, "Ada%20puppy%20zebra", mode="meaning")
    assert embedder.texts == ["Ada puppy zebra"]
