"""Who asks in a conversation, and who may answer."""

import pytest

from pdpp_kernel.record import FieldChange, RecordPlace, StoredRecord
from personal_server.enforcement.semantic_queries import StandsBeside
from personal_server.enforcement.spoken_answers import (
    ANSWERS_SHARE,
    ASKS_SHARE,
    gains_of,
    looked_at,
)
from server.tests.enforcement.mailbox import mails


def place(key: str) -> RecordPlace:
    return ("cin_a", "mails", key)


def gained(key: str, fields: tuple[str, ...] = ("id", "body"), **said: str) -> float:
    """What `key` gains after `a`, of those that say something."""
    rows = {
        place(each): StoredRecord(
            "cin_a", "mails", each, {"id": each, "body": body}, FieldChange(1, 1), {}
        )
        for each, body in said.items()
    }
    source = mails(*fields)
    beside = {place("b"): StandsBeside(place("a"), None, "talk")}
    sources = {("cin_a", "mails"): source}
    return gains_of([place(key)], beside, rows.items(), sources).get(place(key), 0)


@pytest.mark.parametrize("mark", ["?", "？", "؟"])
def test_whoever_asks_loses_and_who_speaks_next_gains(mark: str) -> None:
    assert gained("b", a="Rain.", b=f"Rain{mark} ") == -ASKS_SHARE
    assert gained("b", a=f"Rain{mark} Or snow.", b="Rain? No.") == ANSWERS_SHARE
    assert gained("b", a=f"Rain{mark}", b=f"Rain{mark}") == ANSWERS_SHARE - ASKS_SHARE


def test_what_may_not_be_read_and_what_is_in_no_conversation_changes_nothing() -> None:
    assert gained("b", ("id", "folder"), a="Rain?", b="Yes.") == 0
    assert gained("b", b="Yes.") == 0
    assert gained("c", a="Rain?", c="Yes?") == 0


def test_records_of_conversations_and_those_before_them_are_looked_at() -> None:
    beside = {
        place("b"): StandsBeside(place("a"), None, "talk"),
        place("d"): StandsBeside(None, None, "d"),
    }
    found = looked_at([place("c"), place("b"), place("d")], beside)
    assert found == [place("b"), place("a"), place("d")]
