"""Of what holds some of the words, an answer stands where its question was asked."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import orjson
import pytest

from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.domain.authority import ReadAuthority
from personal_server.domain.declaration_document import parse_declaration
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    CONNECTIONS,
    DIARY,
    JOURNAL_RAW,
    client,
    stream_grant,
    write,
)
from tests.oracle.memory import MemoryStore
from tests.properties.stores import open_store

ASKED = "/v1/search?q=instrument%20ada%20played%20childhood"


def turn(key: str, minute: int, body: str, talk: str = "t1") -> dict[str, Any]:
    at = f"2026-01-01T10:{minute:02}:00Z"
    return {"id": key, "title": "", "body": body, "volume_id": talk, "created_at": at}


TALK = [
    turn("q", 1, "Which instrument was it in your childhood?"),
    turn("a", 2, "The cello, said Ada, for eight years."),
    turn("b", 3, "Ada paid for the tea."),
    *(turn(f"n{n}", 10 + n, f"nothing at all {n}") for n in range(3)),
]


def talks() -> SourceDeclaration:
    """The diary, its entries declared as turns of talks."""
    raw = copy.deepcopy(JOURNAL_RAW)
    [entries] = [each for each in raw["streams"] if each["name"] == "entries"]
    entries["schema"]["properties"]["volume_id"]["x_pdpp_role"] = "conversation"
    return parse_declaration(raw)


TALKS = talks()


def chat(store: RecordStore, turns: list[dict[str, Any]]) -> Door:
    """A store that holds turns of talks."""
    store.put_declaration(TALKS, orjson.dumps(TALKS.raw), 1)
    store.add_connection(CONNECTIONS[0])
    write(store, DIARY, "entries", turns, declared=TALKS)
    return Door(store)


def reader(**limits: Any) -> ReadAuthority:
    """A client that reads the talks within limits of a stream's grant."""
    return client(stream_grant(instance_ids=(DIARY,), **limits), declared=TALKS)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_an_answer_gains_what_was_asked_right_before(kind: str, tmp_path: Path) -> None:
    with open_store(kind, tmp_path) as store:
        door = chat(store, TALK)
        assert door.get(ASKED, reader()).keys == ["q", "a", "b"]
        apart = [turn("q", 1, TALK[0]["body"], "t2")]
        write(store, DIARY, "entries", apart, declared=TALKS)
        assert door.get(ASKED, reader()).keys == ["q", "b", "a"]


def test_the_hour_of_a_talk_counts_where_nothing_is_near_in_meaning() -> None:
    class FarFromAll:
        model = "far from all"

        def embed_query(self, text: str) -> bytes:
            del text
            return bytes(8)

    turns = [
        turn("q", 1, "Which instrument, played in childhood?"),
        turn("n", 2, "nothing at all"),
        turn("a", 5, "The cello, said Ada, and told of all the years in which there was one."),
        turn("b", 9, "Ada paid.", "t2"),
    ]
    door = Door(chat(MemoryStore(), turns).store, embedder=FarFromAll())
    door.store.use_embedding_model(FarFromAll.model)
    assert door.get(f"{ASKED}&mode=words", reader()).keys == ["q", "b", "a"]
    assert door.get(f"{ASKED}&mode=hybrid", reader()).keys == ["q", "a", "b"]


def test_a_neighbour_that_is_hidden_changes_no_byte(tmp_path: Path) -> None:
    answers: list[bytes] = []
    for name, hidden in (("one", "An instrument of his childhood"), ("other", "Lkjh gfdsa qwe")):
        folder = tmp_path / name
        folder.mkdir()
        with open_store("sqlite", folder) as store:
            turns = [TALK[1], *TALK[2:], turn("h", 0, hidden)]
            door = chat(store, turns)
            answers.append(door.get(ASKED, reader(since="2026-01-01T10:01:00Z")).text)
    assert answers[0] == answers[1]


def test_a_hit_tells_of_its_neighbours_in_its_conversation_and_they_are_logged() -> None:
    door = chat(MemoryStore(), TALK)
    for query in ("q=cello", "q=cello&sort=newest"):
        reply = door.get(f"/v1/search?{query}", reader())
        (hit,) = reply.data
        assert hit["context"]["before"]["record_id"] == "q"
        assert hit["context"]["after"] == {"record_id": "b", "text": TALK[2]["body"]}
        (told,) = reply.disclosed
        assert (told.record_count, set(told.keys)) == (3, {"q", "a", "b"})
        blind = reader(fields=("id", "body", "created_at"))
        (alone,) = door.get(f"/v1/search?{query}", blind).data
        assert "context" not in alone
