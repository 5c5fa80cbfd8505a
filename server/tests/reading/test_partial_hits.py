"""Of what holds some of the words, an answer stands where its question was asked."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import orjson
import pytest

from personal_server.domain.declaration_document import parse_declaration
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.resource_server import journal
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import DIARY, client, stream_grant, write
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


def chat(store: RecordStore, monkeypatch: pytest.MonkeyPatch, turns: list[dict[str, Any]]) -> Door:
    """A store whose entries are turns of talks."""
    raw = copy.deepcopy(journal.JOURNAL_RAW)
    [entries] = [each for each in raw["streams"] if each["name"] == "entries"]
    entries["schema"]["properties"]["volume_id"]["x_pdpp_role"] = "conversation"
    declared = parse_declaration(raw)
    monkeypatch.setattr(journal, "JOURNAL", declared)
    monkeypatch.setitem(journal.DECLARATIONS, "journal", declared)
    store.put_declaration(declared, orjson.dumps(declared.raw), 1)
    store.add_connection(journal.CONNECTIONS[0])
    write(store, DIARY, "entries", turns, declared=declared)
    return Door(store)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_an_answer_gains_what_was_asked_right_before(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(kind, tmp_path) as store:
        door = chat(store, monkeypatch, TALK)
        grant = stream_grant(instance_ids=(DIARY,))
        assert door.get(ASKED, client(grant)).keys == ["q", "a", "b"]
        apart = [turn("q", 1, TALK[0]["body"], "t2")]
        write(store, DIARY, "entries", apart, declared=journal.JOURNAL)
        assert door.get(ASKED, client(grant)).keys == ["q", "b", "a"]


def test_the_hour_of_a_talk_counts_where_nothing_is_near_in_meaning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    door = Door(chat(MemoryStore(), monkeypatch, turns).store, embedder=FarFromAll())
    door.store.use_embedding_model(FarFromAll.model)
    reader = client(stream_grant(instance_ids=(DIARY,)))
    assert door.get(f"{ASKED}&mode=words", reader).keys == ["q", "b", "a"]
    assert door.get(f"{ASKED}&mode=hybrid", reader).keys == ["q", "a", "b"]


def test_a_neighbour_that_is_hidden_changes_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[bytes] = []
    for name, hidden in (("one", "An instrument of his childhood"), ("other", "Lkjh gfdsa qwe")):
        folder = tmp_path / name
        folder.mkdir()
        with open_store("sqlite", folder) as store:
            turns = [TALK[1], *TALK[2:], turn("h", 0, hidden)]
            door = chat(store, monkeypatch, turns)
            grant = stream_grant(instance_ids=(DIARY,), since="2026-01-01T10:01:00Z")
            answers.append(door.get(ASKED, client(grant)).text)
    assert answers[0] == answers[1]


def test_a_hit_tells_of_its_neighbours_in_its_conversation_and_they_are_logged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    door = chat(MemoryStore(), monkeypatch, TALK)
    for query in ("q=cello", "q=cello&sort=newest"):
        reply = door.get(f"/v1/search?{query}", client(stream_grant(instance_ids=(DIARY,))))
        (hit,) = reply.data
        assert hit["context"]["before"]["record_id"] == "q"
        assert hit["context"]["after"] == {"record_id": "b", "text": TALK[2]["body"]}
        (told,) = reply.disclosed
        assert (told.record_count, set(told.keys)) == (3, {"q", "a", "b"})
        blind = stream_grant(instance_ids=(DIARY,), fields=("id", "body", "created_at"))
        (alone,) = door.get(f"/v1/search?{query}", client(blind)).data
        assert "context" not in alone
